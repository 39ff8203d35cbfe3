package main

// A group is a part of the navigation. Its pages are in the order in which they are best read.
type group struct {
	title, titleJa string
	pages          []entry
}

// An entry is a page in the navigation: its file, and a name that is short enough to stand in a column.
type entry struct{ source, name string }

// navigation has every page of docs once. TestEveryPageIsInTheNavigation says which one is not here yet.
var navigation = []group{
	{"Start", "はじめに", []entry{
		{"README.md", "Toban"},
		{"README.ja.md", "Toban(日本語)"},
		{"docs/install.md", "Install, upgrade, uninstall"},
	}},
	{"Concepts", "仕組み", []entry{
		{"docs/architecture.md", "Architecture"},
		{"docs/packages.md", "Packages"},
		{"docs/sampledb.md", "SampleDB"},
		{"docs/postgresql.md", "PostgreSQL: a database"},
		{"docs/myapp.md", "MyApp: an application"},
		{"docs/failover.md", "Failover"},
		{"docs/ha.md", "High availability: the rules"},
		{"docs/elections.md", "Elections"},
		{"docs/durability.md", "Durability of commits"},
		{"docs/volumes.md", "Volumes: copies, owners"},
		{"docs/busy.md", "Busy machines"},
		{"docs/agentupdate.md", "Agents of several releases"},
		{"docs/archive.md", "The archive: the rules"},
		{"docs/backupjobs.md", "Jobs of backups and restores"},
		{"docs/upgradesteps.md", "Updates, upgrades: the steps"},
		{"docs/sides.md", "Blue/green: the two sides"},
		{"docs/bluegreencatalog.md", "Blue/green: every system catalog"},
		{"docs/trust.md", "Rights, keys, certificates"},
	}},
	{"How-to", "手順", []entry{
		{"docs/howto.md", "Tasks, one line each"},
		{"docs/kubectl-toban.md", "Daily use"},
		{"docs/console.md", "The web console"},
		{"docs/plan.md", "What a change will do"},
		{"docs/connections.md", "Connections and the pooler"},
		{"docs/readers.md", "Readers"},
		{"docs/backup.md", "Backup"},
		{"docs/restore.md", "Restore"},
		{"docs/verification.md", "Proof of backups"},
		{"docs/store.md", "The store of an archive"},
		{"docs/databaserestore.md", "One table back"},
		{"docs/upgrade.md", "Versions and upgrades"},
		{"docs/bluegreen.md", "Blue/green upgrades"},
		{"docs/security.md", "Security"},
		{"docs/rotation.md", "Passwords and keys: rotation"},
		{"docs/stop.md", "Stop and start"},
		{"docs/monitoring.md", "Monitoring"},
		{"docs/faultdrill.md", "Break it on purpose"},
	}},
	{"Reference", "リファレンス", []entry{
		{"docs/reference/sampledb.md", "SampleDB"},
		{"docs/reference/databasebackup.md", "DatabaseBackup"},
		{"docs/reference/databaserestore.md", "DatabaseRestore"},
		{"docs/reference/faultdrill.md", "FaultDrill"},
		{"docs/reference/postgresql.md", "PostgreSQL"},
		{"docs/reference/myapp.md", "MyApp"},
		{"docs/reference/kubectl-toban.md", "kubectl toban"},
		{"docs/reference/operator.md", "The operator's options"},
		{"docs/reference/annotations.md", "Annotations and labels"},
		{"docs/reference/metrics.md", "Metrics"},
		{"docs/reference/changes.md", "What a change of each field does"},
		{"docs/parameters.md", "PostgreSQL's parameters"},
		{"docs/cis.md", "The CIS Benchmark"},
	}},
	{"Runbooks", "障害時の手順", []entry{
		{"docs/reference/conditions.md", "Conditions, and what to do"},
		{"docs/reference/postgresql-conditions.md", "Conditions of a PostgreSQL"},
		{"docs/reference/myapp-conditions.md", "Conditions of a MyApp"},
		{"docs/noprimary.md", "When no instance leads"},
		{"docs/lostdata.md", "When the data is lost"},
	}},
	{"Measured", "測定", []entry{
		{"docs/comparison.md", "Side by side with others"},
		{"docs/measurements.md", "Time, memory, requests"},
		{"docs/scale.md", "Many databases"},
		{"docs/drills.md", "Drills: the results"},
		{"docs/soak.md", "A soak of an hour"},
		{"docs/drillsfaults.md", "Drills: how they measure"},
		{"docs/drillsrun.md", "Run a drill"},
		{"docs/drillshistory.md", "What drills have found"},
	}},
}
