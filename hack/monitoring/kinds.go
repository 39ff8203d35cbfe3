package main

// kind is one whose conditions have alerts.
type kind struct {
	// name is that of the kind; subject begins the summaries, and prefix is what the names of its alerts have
	// before the type of the condition.
	name, subject, prefix string
	// metric begins the names of its metrics, and label is the one with the name of the object.
	metric, label string
	// file is where its conditions and reasons are.
	file string
	// alerts are those for each type of condition.
	alerts map[string]conditionAlert
	// while is a metric that has to be there while an alert is raised, "" for none.
	while string
	// reasons are those that the metric of a condition can have while it is not true, of a kind whose conditions are
	// in a file with those of other kinds; nil for all that there are.
	reasons map[string][]string
}

// conditionsFile has the conditions of SampleDBs, DatabaseBackups, DatabaseRestores and FaultDrills.
const conditionsFile = "api/v1/conditions.go"

var kinds = []kind{
	{
		name: "SampleDB", subject: "SampleDB", metric: "toban_sampledb", label: "sampledb",
		file: conditionsFile, alerts: ofSampleDB,
	},
	{
		name: "PostgreSQL", subject: "PostgreSQL", prefix: "PostgreSQL",
		metric: "toban_postgresql", label: "postgresql", file: "api/postgresql/v1/conditions.go",
		alerts: map[string]conditionAlert{
			"Ready": {warning, "15m", "is not as its spec wants it", ""},
		},
	},
	{
		name: "MyApp", subject: "MyApp", prefix: "MyApp",
		metric: "toban_myapp", label: "myapp", file: "api/myapp/v1/conditions.go",
		alerts: map[string]conditionAlert{
			"Ready":    {warning, "15m", "is not as its spec wants it", ""},
			"Migrated": {without: readySays},
		},
	},
	{
		// These are of the last ones of a SampleDB, and raise nothing when that is stopped or gone.
		name: "DatabaseBackup", subject: "SampleDB", prefix: "DatabaseBackup",
		metric: "toban_databasebackup", label: "sampledb", file: conditionsFile,
		while: "toban_sampledb_instances_wanted",
		alerts: map[string]conditionAlert{
			"Complete": {info, "15m", "has a last backup that has failed", ""},
			"Verified": {warning, "15m", "has a last verification of a backup that has failed", ""},
		},
		reasons: map[string][]string{
			"Complete": {"Failed", "DeadlineExceeded", "Removed"},
			"Verified": {"VerificationFailed", "Verifying", "Queued"},
		},
	},
}
