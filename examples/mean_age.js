// A program for pv.External(["node", "mean_age.js"]): one line of JSON in, one out.
const lines = require("readline").createInterface({ input: process.stdin });
lines.on("line", (line) => {
  const { records } = JSON.parse(line);
  const total = records.reduce((sum, row) => sum + row.age, 0);
  console.log(JSON.stringify(total / records.length));
});
