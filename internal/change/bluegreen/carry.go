package bluegreen

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"toban.dev/internal/change/major"
)

// CarryFacts are what there is that logical replication may not carry to another side (docs/bluegreen.md, "What is
// refused").
type CarryFacts struct {
	// From is the major version of the side that serves, Newest the newer one of both sides, 0 where it is not known.
	From, Newest int
	// Prepared are prepared transactions, Slots all logical replication slots, Origins replication origins of
	// others that belong to no subscription.
	Prepared, Slots, Origins []string
	// Templates are databases that are templates, and Closed those that let nobody in: neither is followed. InTemplate
	// is what has rows in template1, which alone may be a template.
	Templates, Closed, InTemplate []string
	// BareTemplate says that the language plpgsql was dropped in template1.
	BareTemplate bool
	// Unnoticed is what switches event triggers off for everybody, for a role or in a database: then no change of the
	// schema is noted.
	Unnoticed []string
	// FreeSlots is how many more slots the server may have.
	FreeSlots int
	// Limits are those of the server by the parameters that set them: of Rooms, as many as its version knows.
	Limits map[string]int
	// Workers are the background workers of extensions that run, by their types. Each takes one of
	// max_worker_processes, on the other side as well.
	Workers   []string
	Databases []CarryDatabase
}

// CarryDatabase are those about one database.
type CarryDatabase struct {
	Name string
	// NoIdentity are tables whose rows have nothing by which they are found, Incomparable those with REPLICA IDENTITY
	// FULL and columns that can't be compared, Unlogged those without WAL, Forced those whose owner is kept from rows.
	NoIdentity, Incomparable, Unlogged, Forced []string
	// Numbers are columns with numbers of transactions. Generated are generated ones by which rows are looked for, and
	// GeneratedRows those of tables with REPLICA IDENTITY FULL.
	Numbers, Generated, GeneratedRows []string
	// Detaching are partitions of which DETACH PARTITION … CONCURRENTLY was cut off.
	Detaching []string
	// Always are triggers and rules that run also for what comes from another side.
	Always []string
	// Subscriptions are those of others, Extensions all that are installed.
	Subscriptions, Extensions []string
	// OwnSlots are the slots of links, by what is noted of who made them.
	OwnSlots []string
	// LargeObjects is how many there are.
	LargeObjects int64
	// Taken says that the schema or a publication with Toban's name is somebody else's.
	Taken bool
	// Disabled are the event triggers of a link that are missing, or not enabled always.
	Disabled []string
	// NoLanguage says that the language plpgsql was dropped.
	NoLanguage bool
}

// The reasons for which a second side can't follow.
const (
	SourceTooOld         = "SourceTooOld"
	NoReplicaIdentity    = "NoReplicaIdentity"
	IdentityIncomparable = "IdentityIncomparable"
	GeneratedIdentity    = "GeneratedIdentity"
	TransactionNumbers   = "TransactionNumbers"
	UnloggedTables       = "UnloggedTables"
	LargeObjects         = "LargeObjects"
	AlwaysTriggers       = "AlwaysTriggers"
	ForcedRowSecurity    = "ForcedRowSecurity"
	Subscriptions        = "Subscriptions"
	ReplicationOrigins   = "ReplicationOrigins"
	OwnState             = "OwnState"
	EventTriggersOff     = "EventTriggersOff"
	LanguageMissing      = "LanguageMissing"
	TemplateDatabases    = "TemplateDatabases"
	TemplateRows         = "TemplateRows"
	NameTaken            = "NameTaken"
	TooFewSlots          = "TooFewSlots"
	TooFewWorkers        = "TooFewWorkers"
)

// OldestToFollowBack is the first major version that can leave out what came from the other side (origin = none), and
// that applies rows as the owner of their table (run_as_owner = false).
const OldestToFollowBack = 16

// ownState are extensions that work by themselves, which both sides would do, or keep more than rows of tables.
var ownState = []string{"bdr", "citus", "pg_cron", "pg_squeeze", "pglogical", "spock", "timescaledb"}

// CheckCarry says what is in the way of a second side that follows.
func CheckCarry(f CarryFacts) (refusals []major.Finding) {
	refuse := func(reason string, objects []string, message string) {
		if len(objects) > 0 {
			refusals = append(refusals, major.Finding{Reason: reason, Message: message, Objects: objects})
		}
	}
	if f.From < OldestToFollowBack {
		refuse(SourceTooOld, []string{fmt.Sprintf("PostgreSQL %d", f.From)}, fmt.Sprintf("Before PostgreSQL %d a side "+
			"can't follow back. Upgrade in place", OldestToFollowBack))
	}
	refuse(major.PreparedTransactions, f.Prepared, "There are prepared transactions, which would be open on both "+
		"sides. Commit them (COMMIT PREPARED) or roll them back (ROLLBACK PREPARED) first")
	f.checkTemplates(refuse) // first: in a database that is not followed no slot is known to be Toban's
	refuse(major.LogicalSlots, f.slotsOfOthers(), "Others read changes by logical replication slots, which the new "+
		"side does not have. Stop them, drop their slots, and have them begin anew after the upgrade")
	refuse(ReplicationOrigins, f.Origins, "What a session writes with a replication origin "+
		"(pg_replication_origin_session_setup) is left out, because what came from the other side has one too. Stop "+
		"who writes so, and drop the origins (pg_replication_origin_drop)")
	f.checkTables(refuse)
	refuse(LargeObjects, f.pick(func(d CarryDatabase) []string {
		return d.name(d.LargeObjects > 0, fmt.Sprintf("%s: %d", d.Name, d.LargeObjects))
	}), "Large objects are in no table that can be published. Move them into columns of type bytea, or upgrade in "+
		"place")
	refuse(Subscriptions, f.each(func(d CarryDatabase) []string { return d.Subscriptions }),
		"A database follows another server by a subscription, which both sides would do. Drop it (DROP SUBSCRIPTION)")
	refuse(OwnState, f.each(CarryDatabase.stateful), "Extensions work by themselves, which both sides would do, or "+
		"keep more than rows of tables. Drop them (DROP EXTENSION), or upgrade in place")
	refuse(NameTaken, f.pick(func(d CarryDatabase) []string { return d.name(d.Taken, d.Name) }),
		"A schema has the name toban_sides, or a publication the name toban_to_green or toban_to_blue, and is not "+
			"Toban's. Rename it (ALTER … RENAME TO)")
	refuse(EventTriggersOff, append(slices.Clone(f.Unnoticed),
		f.each(func(d CarryDatabase) []string { return d.Disabled })...),
		"Changes of the schema are noticed by event triggers, which are switched off. Take that back (event_triggers "+
			"in spec.postgresql.parameters, ALTER ROLE … or ALTER DATABASE … RESET event_triggers, ALTER EVENT "+
			"TRIGGER … ENABLE ALWAYS), and before you ask for an upgrade: the other side is a copy, and would keep it")
	bare := f.pick(func(d CarryDatabase) []string { return d.name(d.NoLanguage, d.Name) })
	if f.BareTemplate {
		bare = append(bare, "template1")
	}
	refuse(LanguageMissing, bare, "What notes changes of the schema is written in plpgsql, which was dropped, and an "+
		"upgrade makes it anew. CREATE EXTENSION plpgsql")
	if missing := len(f.Databases) - f.FreeSlots; missing > 0 {
		refuse(TooFewSlots, []string{fmt.Sprintf("%d are missing", missing)}, "Each database needs a replication "+
			"slot. Raise max_replication_slots in spec.postgresql.parameters")
	}
	refuse(TooFewWorkers, f.tooFew(), "A side that follows needs a worker and an origin for each database. Raise what "+
		"is too low in spec.postgresql.parameters, or upgrade in place")
	return refusals
}

// Rooms are the parameters that say how many databases a side can follow, with how much each needs besides one for each
// database. One worker process launches the workers. PostgreSQL 18 counts origins apart from slots.
var Rooms = map[string]int{
	"max_logical_replication_workers": 0, WorkerProcesses: 1, "max_active_replication_origins": 0,
}

// WorkerProcesses is the parameter whose room extensions use too.
const WorkerProcesses = "max_worker_processes"

// tooFew are the limits that are too low, with what they are and what is needed.
func (f CarryFacts) tooFew() (all []string) {
	for _, name := range slices.Sorted(maps.Keys(f.Limits)) {
		needs, why := len(f.Databases)+Rooms[name], ""
		if name == WorkerProcesses && len(f.Workers) > 0 {
			needs, why = needs+len(f.Workers), fmt.Sprintf(" (there are %s)", strings.Join(f.Workers, ", "))
		}
		if f.Limits[name] < needs {
			all = append(all, fmt.Sprintf("%s is %d, and must be %d at least%s", name, f.Limits[name], needs, why))
		}
	}
	return all
}

// checkTemplates is about databases in which no side follows. Who is let in there writes rows that the other side would
// never have, and who is not may be let in at any time by the owner, for a moment that nobody sees.
func (f CarryFacts) checkTemplates(refuse func(string, []string, string)) {
	refuse(TemplateDatabases, f.Templates, "Databases are templates, which are not followed: a session that follows "+
		"would keep others from copying them. ALTER DATABASE … IS_TEMPLATE false until the upgrade has ended, or drop "+
		"them")
	refuse(major.ClosedDatabases, f.Closed, "Nobody may connect to databases, so that they can't be followed. ALTER "+
		"DATABASE … ALLOW_CONNECTIONS true, or drop them")
	refuse(TemplateRows, f.InTemplate, "The database template1 has rows, and is not followed. Move them into another "+
		"database, and drop what they were in")
}

// checkTables is about those that can't be carried as they are.
func (f CarryFacts) checkTables(refuse func(string, []string, string)) {
	refuse(NoReplicaIdentity, f.each(func(d CarryDatabase) []string { return d.NoIdentity }),
		"Tables have nothing by which a row is found: once they are published, PostgreSQL refuses their UPDATE and "+
			"DELETE. Add a primary key, or ALTER TABLE … REPLICA IDENTITY FULL")
	refuse(IdentityIncomparable, f.each(func(d CarryDatabase) []string { return d.Incomparable }),
		"Tables with REPLICA IDENTITY FULL have columns that PostgreSQL can't compare. Add a primary key")
	refuse(GeneratedIdentity, f.each(f.generated),
		"Rows are found by generated columns, which are not sent: once these tables are published, PostgreSQL 18 "+
			"refuses their UPDATE and DELETE, and former versions look for rows in vain. ALTER TABLE … REPLICA "+
			"IDENTITY USING INDEX, with one of other columns")
	refuse(TransactionNumbers, f.each(func(d CarryDatabase) []string { return d.Numbers }),
		"Columns have numbers of transactions, and the other side counts its own, from a lower one. Whoever compares "+
			"both, as outboxes do, would skip rows. Drop the columns, or upgrade in place")
	refuse(major.DetachPending, f.each(func(d CarryDatabase) []string { return d.Detaching }), major.DetachPendingSays)
	refuse(UnloggedTables, f.each(func(d CarryDatabase) []string { return d.Unlogged }),
		"The rows of unlogged tables are not in the WAL. ALTER TABLE … SET LOGGED, or drop them")
	refuse(AlwaysTriggers, f.each(func(d CarryDatabase) []string { return d.Always }),
		"Triggers or rules are enabled ALWAYS or REPLICA, so they would run on both sides. ALTER TABLE … ENABLE "+
			"TRIGGER, which is the default way")
	refuse(ForcedRowSecurity, f.each(func(d CarryDatabase) []string { return d.Forced }),
		"The owners of tables are kept from rows, and rows are written as the owner. ALTER TABLE … NO FORCE ROW LEVEL "+
			"SECURITY")
}

// generatedRefusedSince is the first major version that refuses UPDATE and DELETE of a published table with REPLICA
// IDENTITY FULL and a generated column, which is not sent.
const generatedRefusedSince = 18

// generated are the generated columns because of which rows of a database can't be changed, or not be found.
func (f CarryFacts) generated(d CarryDatabase) []string {
	if f.Newest > 0 && f.Newest < generatedRefusedSince {
		return d.Generated
	}
	all := slices.Concat(d.Generated, d.GeneratedRows)
	slices.Sort(all)
	return slices.Compact(all)
}

// slotsOfOthers are all but those that are noted as ours, whatever they are called.
func (f CarryFacts) slotsOfOthers() []string {
	own := f.pick(func(d CarryDatabase) []string { return d.OwnSlots })
	return slices.DeleteFunc(slices.Clone(f.Slots), func(name string) bool { return slices.Contains(own, name) })
}

// stateful are the extensions that a second side can't have beside the first.
func (d CarryDatabase) stateful() []string {
	return slices.DeleteFunc(slices.Clone(d.Extensions), func(name string) bool {
		return !slices.Contains(ownState, name)
	})
}

func (d CarryDatabase) name(is bool, text string) []string {
	if is {
		return []string{text}
	}
	return nil
}

// each are objects of all databases, with the name of theirs.
func (f CarryFacts) each(of func(CarryDatabase) []string) []string {
	return f.pick(func(d CarryDatabase) (all []string) {
		for _, object := range of(d) {
			all = append(all, d.Name+": "+object)
		}
		return all
	})
}

func (f CarryFacts) pick(of func(CarryDatabase) []string) (all []string) {
	for _, d := range f.Databases {
		all = append(all, of(d)...)
	}
	return all
}
