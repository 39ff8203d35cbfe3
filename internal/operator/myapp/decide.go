package myapp

import (
	"fmt"
	"time"

	v1 "toban.dev/api/myapp/v1"
)

// view is all that the decision about an update depends on.
type view struct {
	// image is that of the spec.
	image string
	// needed says that a migration comes before the spec is rolled out, first that nothing has been rolled out yet.
	needed, first bool
	// missing names the part of the configuration that is not there, "" for nothing.
	missing  string
	database database
	jobs     []jobView
	// pod is one of a migration that has not ended, "" for none.
	pod    string
	backup backupView
}

// jobState is how the Job of a migration is.
type jobState int

const (
	jobRunning  jobState = iota // it has not ended
	jobComplete                 // it has ended well
	jobFailed                   // it has ended otherwise
)

// jobView is the Job of a migration.
type jobView struct {
	name    string
	created time.Time
	// wanted says that it goes from what runs to what the spec wants, attempt that it is the very
	// Job that would be made now.
	wanted, attempt bool
	state           jobState
	message         string
}

// backupState is how the backup before a migration is.
type backupState int

const (
	backupNone backupState = iota
	backupRunning
	backupComplete
	backupFailed // or it can't be taken
)

type backupView struct {
	wanted  bool
	state   backupState
	message string
}

// Action is what is done about an update.
type Action string

// The actions.
const (
	ActionHold    Action = "hold"    // what runs goes on as it is
	ActionBackup  Action = "backup"  // create the DatabaseBackup; what runs goes on
	ActionMigrate Action = "migrate" // create the Job; what runs goes on
	ActionRoll    Action = "roll"    // the Pods become as the spec wants them
)

// Decision is what is done, and why.
type Decision struct {
	Action  Action
	Reason  string
	Message string
}

func hold(reason, message string) Decision { return Decision{ActionHold, reason, message} }

// decide says how an update goes on. It is pure. Without a migration only what Pods can't start without keeps
// them from being rolled out, and the database only before the first of them.
func decide(v view) Decision {
	if v.needed {
		return v.migrate()
	}
	if d := v.waits(); d != nil {
		return *d
	}
	return v.roll()
}

func (v view) roll() Decision {
	return Decision{ActionRoll, v1.ReasonMigrated, "the schema is that of " + v.image}
}

// waits is the decision to hold where something is not there that Pods need, nil where all is.
func (v view) waits() *Decision {
	d := hold(v1.ReasonConfigNotFound, v.missing+" is not there")
	switch {
	case v.missing != "":
	case v.first && v.database.wanted && !v.database.found:
		d = hold(v1.ReasonDatabaseNotFound, "the object that spec.database names does not exist")
	case v.first && v.database.wanted && !v.database.usable:
		d = hold(v1.ReasonDatabaseNotReady, "the first Pods wait for the database: "+v.database.why)
	default:
		return nil
	}
	return &d
}

// migrate brings the schema to the version of the spec before the Pods. The first rule that holds counts:
// what has succeeded has succeeded; nothing begins beside what has not ended; and what has failed is not
// tried again in the same way.
func (v view) migrate() Decision {
	if v.done() != "" {
		if v.missing != "" {
			return hold(v1.ReasonConfigNotFound, v.missing+" is not there")
		}
		return v.roll()
	}
	for _, j := range v.jobs {
		switch {
		case j.state == jobRunning && j.wanted:
			return hold(v1.ReasonMigrating, j.message)
		case j.state == jobRunning:
			return hold(v1.ReasonMigrating, "waits for the migration to another version to end: "+j.message)
		}
	}
	if v.pod != "" {
		return hold(v1.ReasonMigrating, fmt.Sprintf("waits for Pod %s of a migration that was stopped to end", v.pod))
	}
	for _, j := range v.jobs {
		if j.attempt && j.state == jobFailed {
			return hold(v1.ReasonMigrationFailed, j.message)
		}
	}
	return v.begin()
}

// done is the Job that has brought the schema to the version of the spec, "" where there is none.
func (v view) done() string {
	for _, j := range v.jobs {
		if j.wanted && j.state == jobComplete {
			return j.name
		}
	}
	return ""
}

// current is the Job that the update is at: the one that has succeeded, or runs, or would be made
// now; "" where there is none.
func (v view) current() string {
	name := v.done()
	for _, j := range v.jobs {
		if name == "" && j.wanted && j.state == jobRunning {
			name = j.name
		}
	}
	for _, j := range v.jobs {
		if name == "" && j.attempt {
			name = j.name
		}
	}
	return name
}

// begin takes the steps up to the Job.
func (v view) begin() Decision {
	switch {
	case v.missing != "":
		return hold(v1.ReasonConfigNotFound, v.missing+" is not there")
	case !v.database.found:
		return hold(v1.ReasonDatabaseNotFound, "the object that spec.database names does not exist")
	case !v.database.ready:
		return hold(v1.ReasonDatabaseNotReady, "the migration waits for the database: "+v.database.why)
	case v.backup.wanted && v.backup.state == backupFailed:
		return hold(v1.ReasonBackupFailed, "there is no backup from before the migration: "+v.backup.message)
	case v.backup.wanted && v.backup.state == backupRunning:
		return hold(v1.ReasonBackingUp, v.backup.message)
	case v.backup.wanted && v.backup.state == backupNone:
		return Decision{ActionBackup, v1.ReasonBackingUp, "a backup is taken before the migration"}
	}
	return Decision{ActionMigrate, v1.ReasonMigrating, "the migration's Job is being created"}
}

// obsolete are the Jobs that are to go. A migration that is not wanted any more is stopped; of what has ended, what
// counts stays: while an update is under way what it depends on, and else the newest that has succeeded, for its log.
func obsolete(v view) []string {
	var out []string
	newest := ""
	var at time.Time
	for _, j := range v.jobs {
		if j.state == jobComplete && !j.created.Before(at) {
			newest, at = j.name, j.created
		}
	}
	for _, j := range v.jobs {
		keep := j.name == newest
		if v.needed {
			keep = j.state == jobRunning || j.attempt || j.wanted && j.state == jobComplete
		}
		if !keep {
			out = append(out, j.name)
		}
	}
	return out
}
