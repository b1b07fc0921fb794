import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Arrays;

/** A program for pv.External(["java", "MeanAge.java"]): reads {"ages": [..]} a line and answers with their mean. */
public class MeanAge {
    public static void main(String[] arguments) throws Exception {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String ages = line.substring(line.indexOf('[') + 1, line.indexOf(']'));
            double mean = Arrays.stream(ages.split(",")).mapToDouble(Double::parseDouble).average().orElseThrow();
            System.out.println(mean);
            System.out.flush();
        }
    }
}
