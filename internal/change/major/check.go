package major

import (
	"fmt"
	"slices"
	"strings"
)

// Facts are what the check of an upgrade to another major version has found out. What is nil is not known, and refuses
// nothing.
type Facts struct {
	From, To  int
	Databases []DatabaseFacts
	// Prepared are prepared transactions, Slots logical replication slots, Roles those of users that begin with pg_,
	// Outside tablespaces that are not on the volume. Lost is what users have changed of PostgreSQL's own tablespaces
	// and roles, Resets are options of the former.
	Prepared, Slots, Roles, Outside, Lost, Resets []string
	// Extensions are those that the new image has, with their versions, Scripts the versions of their scripts, as "1.0"
	// or "1.0--1.1". Libraries are what it has for the server to load, Locales those of its C library, and Former those
	// of the old image.
	Extensions      map[string]string
	Scripts         map[string][]string
	Libraries       []string
	Locales, Former []string
	// CLibraries are those of the old and the new image, each "" where it is not known.
	CLibraries [2]string
	// Rejected is what the new server says of the parameters, Trial what pg_upgrade has said of the schema without
	// rows, Skipped what of the schema could not be tried. Each is "" for nothing.
	Rejected, Trial, Skipped string
	// Relations is how many there are.
	Relations int
	// OnRequest says that what the upgrade leaves in the databases is done when somebody asks for it, and else by
	// itself. UpdateExtensions says that extensions are updated then.
	OnRequest, UpdateExtensions bool
}

// DatabaseFacts are those about one database.
type DatabaseFacts struct {
	Name string
	// Invalid says that its removal was cut off, Closed that nobody may connect to it.
	Invalid, Closed bool
	// Provider is PostgreSQL's letter for who sorts, Collate and CType are locales of the C library.
	Provider, Collate, CType string
	// Extensions are those in it, with their versions.
	Extensions map[string]string
	// Libraries are those that its functions in C are in, besides those of extensions.
	Libraries []string
	// References are columns whose values are other numbers in the new data.
	References []string
	// Options are options of columns that the new version does not know.
	Options []string
	// System are objects of users in PostgreSQL's own schemas.
	System []string
	// Detaching are partitions of which DETACH PARTITION … CONCURRENTLY was cut off.
	Detaching []string
	// Lost are rights in the information schema that users have changed, Resets those of them that let roles read what
	// initdb lets nobody read.
	Lost, Resets []string
}

// Finding is something that is in the way of an upgrade, or is to be known before it.
type Finding struct {
	Reason, Message string
	Objects         []string
}

// The reasons for which an upgrade is refused.
const (
	PreparedTransactions = "PreparedTransactions"
	LogicalSlots         = "LogicalSlots"
	InvalidDatabases     = "InvalidDatabases"
	ClosedDatabases      = "ClosedDatabases"
	ReferenceColumns     = "ReferenceColumns"
	ColumnOptions        = "ColumnOptions"
	DetachPending        = "DetachPending"
	SystemSchemas        = "SystemSchemas"
	SystemRights         = "SystemRights"
	ExtensionMissing     = "ExtensionMissing"
	ExtensionOlder       = "ExtensionOlder"
	LibraryMissing       = "LibraryMissing"
	LocaleMissing        = "LocaleMissing"
	RoleNames            = "RoleNames"
	TablespaceOutside    = "TablespaceOutside"
	ParameterRejected    = "ParameterRejected"
	TrialFailed          = "TrialFailed"
)

// The reasons of warnings.
const (
	SlotsMustBeRead  = "SlotsMustBeRead"
	ExtensionUpdates = "ExtensionUpdates"
	ExtensionStays   = "ExtensionStays"
	SortingMayDiffer = "SortingMayDiffer"
	NoStatistics     = "NoStatistics"
	ManyRelations    = "ManyRelations"
	SystemSettings   = "SystemSettings"
	TrialIncomplete  = "TrialIncomplete"
)

// DetachPendingSays is what is said of partitions that are detached in part.
const DetachPendingSays = "Partitions are detached only in part, because DETACH PARTITION … CONCURRENTLY has not " +
	"ended. An upgrade attaches them anew, so that their rows would be in the table again. End it (ALTER TABLE … " +
	"DETACH PARTITION … FINALIZE)"

// manyRelations is from how many on pg_upgrade takes minutes for them alone.
const manyRelations = 100_000

// Check says why an upgrade can't be done as things are, and what is to be known before it.
func Check(f Facts) (refusals, warnings []Finding) {
	refuse := func(reason string, objects []string, message string) {
		if len(objects) > 0 {
			refusals = append(refusals, Finding{reason, message, objects})
		}
	}
	refuse(PreparedTransactions, f.Prepared, "There are prepared transactions. Commit them (COMMIT PREPARED) or roll "+
		"them back (ROLLBACK PREPARED) first")
	if f.From < 17 {
		refuse(LogicalSlots, f.Slots, fmt.Sprintf("There are logical replication slots, which PostgreSQL %d can't "+
			"give to another version. Have their consumers read all, drop the slots, and make them anew "+
			"after the upgrade", f.From))
	}
	refuse(InvalidDatabases, f.where(func(d DatabaseFacts) bool { return d.Invalid }),
		"The removal of a database was cut off. Drop it again (DROP DATABASE)")
	refuse(ClosedDatabases, f.where(func(d DatabaseFacts) bool {
		return d.Closed && !d.Invalid && d.Name != "template0"
	}), "Nobody may connect to a database. Allow it (ALTER DATABASE … ALLOW_CONNECTIONS true), or drop the database")
	refuse(ReferenceColumns, f.each(func(d DatabaseFacts) []string { return d.References }),
		"Columns refer to objects by numbers that are others in the new data. Change their type to text, or drop them")
	refuse(ColumnOptions, f.each(func(d DatabaseFacts) []string { return d.Options }),
		"Columns have options that the new version does not know. Take them away (ALTER TABLE … ALTER COLUMN … RESET)")
	refuse(DetachPending, f.each(func(d DatabaseFacts) []string { return d.Detaching }), DetachPendingSays)
	refuse(SystemSchemas, f.each(func(d DatabaseFacts) []string { return d.System }),
		"Objects of users are in the schemas pg_catalog or information_schema, of which an upgrade takes over "+
			"nothing, and no rows. Move them into another schema (ALTER … SET SCHEMA), or drop them")
	refuse(SystemRights, append(slices.Clone(f.Lost), f.each(func(d DatabaseFacts) []string { return d.Lost })...),
		"An upgrade loses rights to PostgreSQL's own tablespaces, memberships of its roles in each other, and rights "+
			"in the schema information_schema. Take them back (REVOKE; GRANT what was revoked), and give them again "+
			"afterwards")
	refuse(ExtensionMissing, f.each(f.missing), "The new image lacks extensions. Drop them (DROP EXTENSION), or take "+
		"an image that has them")
	refuse(ExtensionOlder, f.each(f.of(isUnknown)), "The new image has older versions of extensions, and does not "+
		"know the installed ones: functions may be missing in their libraries. Take an image with those versions or "+
		"newer ones, or drop the extensions (DROP EXTENSION)")
	refuse(LibraryMissing, f.each(f.lacks), "The new image lacks libraries of functions in C. Drop the functions, or "+
		"take an image that has them")
	f.checkLocales(refuse)
	refuse(RoleNames, f.Roles, "Names of roles that begin with pg_ are PostgreSQL's own. Rename these (ALTER ROLE … "+
		"RENAME TO)")
	refuse(TablespaceOutside, f.Outside, "Tablespaces are not on the volume. Move what is in them to another one")
	refuse(ParameterRejected, said(f.Rejected), fmt.Sprintf("PostgreSQL %d does not accept "+
		"spec.postgresql.parameters. Remove or change what it names", f.To))
	refuse(TrialFailed, said(f.Trial), "pg_upgrade has failed on a copy of the schema without rows. Change what it "+
		"names; where it names nothing of yours, take a newer minor version")
	return refusals, f.warnings()
}

func said(words string) []string {
	if words == "" {
		return nil
	}
	return []string{words}
}

func (f Facts) checkLocales(refuse func(string, []string, string)) {
	refuse(LocaleMissing, f.each(func(d DatabaseFacts) []string { return f.foreign(d, f.Locales) }),
		"The new image lacks locales of databases. Take an image that has them (localedef)")
	refuse(LocaleMissing, f.each(func(d DatabaseFacts) []string { return f.foreign(d, f.Former) }),
		"The locales of databases are not where the old image has those of its C library (/usr/lib/locale), so the "+
			"old server can't run in the new image. Move the data with pg_dump")
}

// warnings are what is to be known before.
func (f Facts) warnings() (all []Finding) {
	warn := func(is bool, reason string, objects []string, message string) {
		if is {
			all = append(all, Finding{reason, message, objects})
		}
	}
	warn(f.From >= 17 && len(f.Slots) > 0, SlotsMustBeRead, f.Slots, "Logical replication slots come along only if "+
		"their consumers have read all when the database is closed. Else the upgrade fails, and the old data is given "+
		"back")
	updates, stay := f.each(f.of(canBeUpdated)), f.each(f.of(stays))
	become := "They stay as they are: update them when that suits your applications (ALTER EXTENSION … UPDATE)"
	if f.UpdateExtensions {
		become = "They are updated " + f.afterwards()
	}
	warn(len(updates) > 0, ExtensionUpdates, updates, "The new image has other versions of extensions. "+become)
	warn(len(stay) > 0, ExtensionStays, stay, "The new image has other versions of extensions, and no scripts that "+
		"lead there (ALTER EXTENSION … UPDATE fails). Look whether the extension's own notes name another way")
	sorted := f.where(func(d DatabaseFacts) bool {
		return !d.Invalid && d.Provider == "c" && !byCode(d.Collate)
	})
	differ := f.CLibraries[0] != "" && f.CLibraries[1] != "" && f.CLibraries[0] != f.CLibraries[1]
	warn(differ && len(sorted) > 0, SortingMayDiffer, sorted, fmt.Sprintf("The C library sorts texts in these "+
		"databases, and it is another one (%s, then %s). Indexes on texts are rebuilt %s, and until then a query may "+
		"miss rows. Refresh materialized views, and look at partitions by ranges of texts and CHECK constraints, "+
		"yourself", f.CLibraries[0], f.CLibraries[1], f.afterwards()))
	warn(f.To < 18, NoStatistics, nil, fmt.Sprintf("PostgreSQL %d does not take the planner's statistics over: they "+
		"are made %s, rough ones of all tables first, and until then queries may be slow", f.To, f.afterwards()))
	warn(f.Relations >= manyRelations, ManyRelations, nil, fmt.Sprintf("There are %d tables, indexes and other "+
		"relations: the upgrade takes minutes for them, however small they are", f.Relations))
	resets := append(slices.Clone(f.Resets), f.each(func(d DatabaseFacts) []string { return d.Resets })...)
	warn(len(resets) > 0, SystemSettings, resets, "An upgrade loses options of PostgreSQL's own tablespaces, and "+
		"rights to read what nobody else may read in the schema information_schema. Give them again afterwards (ALTER "+
		"TABLESPACE … SET, GRANT SELECT)")
	warn(f.Skipped != "", TrialIncomplete, said(f.Skipped), "Some of the schema could not be tried")
	return all
}

// afterwards says when the Job is at work that does what an upgrade leaves in the databases.
func (f Facts) afterwards() string {
	if f.OnRequest {
		return "when you ask for it after the upgrade (toban.dev/reindex=now, for spec.update.mode is OnRequest)"
	}
	return "by themselves after the upgrade"
}

// where are the names of databases.
func (f Facts) where(is func(DatabaseFacts) bool) (names []string) {
	for _, d := range f.Databases {
		if is(d) {
			names = append(names, d.Name)
		}
	}
	return names
}

// each are objects of databases, each as "DATABASE: OBJECT".
func (f Facts) each(of func(DatabaseFacts) []string) (all []string) {
	for _, d := range f.Databases {
		for _, name := range of(d) {
			all = append(all, d.Name+": "+name)
		}
	}
	return all
}

// lacks are libraries that the new image lacks.
func (f Facts) lacks(d DatabaseFacts) (all []string) {
	for _, name := range d.Libraries {
		if f.Libraries != nil && !slices.Contains(f.Libraries, strings.TrimPrefix(name, "$libdir/")) {
			all = append(all, name)
		}
	}
	return all
}

// foreign are locales of a database that are not among some.
func (f Facts) foreign(d DatabaseFacts, known []string) (all []string) {
	if known == nil || d.Invalid {
		return nil
	}
	for _, name := range []string{d.Collate, d.CType} {
		is := func(other string) bool { return plainLocale(other) == plainLocale(name) }
		everywhere := slices.Contains([]string{"", "C", "POSIX"}, name)
		if !everywhere && !slices.ContainsFunc(known, is) && !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}

// plainLocale is the name of a locale as the C library compares it: of the character set only letters and digits count,
// in lower case.
func plainLocale(name string) string {
	language, charset, ok := strings.Cut(name, ".")
	if !ok {
		return name
	}
	charset, modifier, modified := strings.Cut(charset, "@")
	charset = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, strings.ToLower(charset))
	if modified {
		charset += "@" + modifier
	}
	return language + "." + charset
}

// byCode says that a locale sorts by the codes of characters, which no library changes.
func byCode(locale string) bool {
	return slices.Contains([]string{"C", "POSIX", "C.utf8"}, plainLocale(locale))
}
