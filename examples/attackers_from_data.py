"""Attackers from data: how secret is a ballot if a survey publishes counts?

The data is the American National Election Survey of 1996, 944 voters, as statsmodels ships it (public domain). Three
attackers want to know whether one voter chose Dole. All know that this voter leans to the Republicans and went to
college; they differ in what they know of the others. Three programs publish counts of a precinct of 63 voters.
"""

import statsmodels.api as sm

import privug as pv

COLUMNS = ["PID", "educ", "income", "vote"]  # party, education, income bracket, and 1 for Dole
survey = sm.datasets.anes96.load_pandas().data[COLUMNS].astype(int)
precinct = survey.iloc[5::15].reset_index(drop=True)  # the table that is to be published about
elsewhere = survey.drop(index=survey.index[5::15])  # what the attackers learn from
VOTER = int(precinct.index[(precinct.PID == 4) & (precinct.educ == 5)][0])
KNOWN = {"PID": 4, "educ": 5}


def dole(records):
    return pv.count(records, lambda row: row.vote == 1)


def dole_noisy(records):
    return dole(records) + pv.sample(pv.DiscreteLaplace(1))


def dole_among_graduates(records):
    return pv.count(records, lambda row: row.vote == 1 and row.educ >= 5)


ATTACKERS = {
    "columns apart": pv.Records.from_frame(elsewhere, size=len(precinct), target=KNOWN, position=VOTER),
    "tree of columns": pv.Records.from_frame(elsewhere, size=len(precinct), model="tree", target=KNOWN, position=VOTER),
    "all other rows": pv.Records.knows_all_but(precinct, VOTER, unknown=["vote"], model="tree", smoothing=1),
}


def main():
    matrix = pv.compare(
        attackers={name: {"records": table} for name, table in ATTACKERS.items()},
        programs={"count": dole, "noisy count": dole_noisy, "count of graduates": dole_among_graduates},
        secret=lambda records: records[VOTER].vote,
        measures=["mutual_information", "bayes_vulnerability"],
    )
    print(matrix)


if __name__ == "__main__":
    main()
