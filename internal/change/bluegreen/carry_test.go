package bluegreen

import (
	"slices"
	"testing"

	"toban.dev/internal/change/major"
)

// Each thing that a second side can't have is refused by its own name, with the objects, and nothing else is.
func TestWhatIsNotCarriedIsRefusedByName(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*CarryFacts)
		reason string
		object string
	}{
		"nothing":                         {func(*CarryFacts) {}, "", ""},
		"the oldest that can follow back": {func(f *CarryFacts) { f.From = 16 }, "", ""},
		"one that can't":                  {func(f *CarryFacts) { f.From = 15 }, SourceTooOld, "PostgreSQL 15"},
		"a prepared transaction": {func(f *CarryFacts) { f.Prepared = []string{"x (shop)"} },
			major.PreparedTransactions, "x (shop)"},
		"a slot of others": {func(f *CarryFacts) { f.Slots = []string{"debezium"} }, major.LogicalSlots, "debezium"},
		"slots of links, and one that is only called so": {func(f *CarryFacts) {
			f.Slots = []string{"toban_to_green_5", "toban_to_green_6"}
			f.Databases[1].OwnSlots = []string{"toban_to_green_5"}
		}, major.LogicalSlots, "toban_to_green_6"},
		"an origin of others": {func(f *CarryFacts) { f.Origins = []string{"sink"} }, ReplicationOrigins, "sink"},
		"a template":          {func(f *CarryFacts) { f.Templates = []string{"shapes"} }, TemplateDatabases, "shapes"},
		"a database that lets nobody in": {func(f *CarryFacts) { f.Closed = []string{"old"} },
			major.ClosedDatabases, "old"},
		"rows in template1": {func(f *CarryFacts) { f.InTemplate = []string{"public.t"} }, TemplateRows, "public.t"},
		"a table without a key": {func(f *CarryFacts) { f.Databases[1].NoIdentity = []string{"public.log"} },
			NoReplicaIdentity, "shop: public.log"},
		"a full identity of json": {func(f *CarryFacts) { f.Databases[1].Incomparable = []string{"public.j (doc)"} },
			IdentityIncomparable, "shop: public.j (doc)"},
		"a key that is generated": {func(f *CarryFacts) { f.Databases[1].Generated = []string{"public.g (k)"} },
			GeneratedIdentity, "shop: public.g (k)"},
		"rows with what is generated, and it is not known to where": {func(f *CarryFacts) {
			f.Databases[1].GeneratedRows = []string{"public.g (k)"}
		}, GeneratedIdentity, "shop: public.g (k)"},
		"rows with what is generated, to 18": {func(f *CarryFacts) {
			f.Newest, f.Databases[1].GeneratedRows = 18, []string{"public.g (k)"}
			f.Databases[1].Generated = []string{"public.g (k)"} // it is said once
		}, GeneratedIdentity, "shop: public.g (k)"},
		"rows with what is generated, to 17": {func(f *CarryFacts) {
			f.From, f.Newest, f.Databases[1].GeneratedRows = 16, 17, []string{"public.g (k)"}
		}, "", ""},
		"a key that is generated, to 17": {func(f *CarryFacts) {
			f.From, f.Newest, f.Databases[1].Generated = 16, 17, []string{"public.g (k)"}
		}, GeneratedIdentity, "shop: public.g (k)"},
		"a number of a transaction": {func(f *CarryFacts) { f.Databases[1].Numbers = []string{"public.o (tx xid8)"} },
			TransactionNumbers, "shop: public.o (tx xid8)"},
		"a partition that is detached in part": {func(f *CarryFacts) {
			f.Databases[1].Detaching = []string{"public.p_1"}
		}, major.DetachPending, "shop: public.p_1"},
		"an unlogged table": {func(f *CarryFacts) { f.Databases[0].Unlogged = []string{"public.cache"} },
			UnloggedTables, "postgres: public.cache"},
		"large objects":     {func(f *CarryFacts) { f.Databases[1].LargeObjects = 3 }, LargeObjects, "shop: 3"},
		"a trigger, always": {func(f *CarryFacts) { f.Databases[1].Always = []string{"t"} }, AlwaysTriggers, "shop: t"},
		"forced security": {func(f *CarryFacts) { f.Databases[1].Forced = []string{"x"} }, ForcedRowSecurity,
			"shop: x"},
		"a subscription": {func(f *CarryFacts) { f.Databases[1].Subscriptions = []string{"s"} }, Subscriptions,
			"shop: s"},
		"a scheduler": {func(f *CarryFacts) { f.Databases[0].Extensions = []string{"hstore", "pg_cron"} }, OwnState,
			"postgres: pg_cron"},
		"any other extension": {func(f *CarryFacts) { f.Databases[0].Extensions = []string{"hstore"} }, "", ""},
		"a taken name":        {func(f *CarryFacts) { f.Databases[1].Taken = true }, NameTaken, "shop"},
		"no event triggers": {func(f *CarryFacts) { f.Unnoticed = []string{"the role app"} }, EventTriggersOff,
			"the role app"},
		"an event trigger that is disabled": {func(f *CarryFacts) { f.Databases[1].Disabled = []string{"e"} },
			EventTriggersOff, "shop: e"},
		"no plpgsql in template1": {func(f *CarryFacts) { f.BareTemplate = true }, LanguageMissing, "template1"},
		"no plpgsql":              {func(f *CarryFacts) { f.Databases[1].NoLanguage = true }, LanguageMissing, "shop"},
		"as many workers as are needed": {func(f *CarryFacts) {
			f.Limits = map[string]int{"max_logical_replication_workers": 2, "max_worker_processes": 3}
		}, "", ""},
		"no worker for a database": {func(f *CarryFacts) {
			f.Limits = map[string]int{"max_logical_replication_workers": 1}
		}, TooFewWorkers, "max_logical_replication_workers is 1, and must be 2 at least"},
		"no process for who launches them": {func(f *CarryFacts) {
			f.Limits = map[string]int{"max_worker_processes": 2}
		}, TooFewWorkers, "max_worker_processes is 2, and must be 3 at least"},
		"no process beside the workers of extensions": {func(f *CarryFacts) {
			f.Limits = map[string]int{"max_logical_replication_workers": 2, "max_worker_processes": 4}
			f.Workers = []string{"toolbox worker", "pg_wait_sampling collector"}
		}, TooFewWorkers, "max_worker_processes is 4, and must be 5 at least (there are toolbox worker, " +
			"pg_wait_sampling collector)"},
		"enough for the workers of extensions": {func(f *CarryFacts) {
			f.Limits = map[string]int{"max_worker_processes": 4}
			f.Workers = []string{"toolbox worker"}
		}, "", ""},
		"no origin for a database": {func(f *CarryFacts) {
			f.Limits = map[string]int{"max_active_replication_origins": 1}
		}, TooFewWorkers, "max_active_replication_origins is 1, and must be 2 at least"},
		"no slot left": {func(f *CarryFacts) { f.FreeSlots = 1 }, TooFewSlots, "1 are missing"},
	} {
		t.Run(name, func(t *testing.T) {
			f := CarryFacts{From: 17, FreeSlots: 2, Databases: []CarryDatabase{{Name: "postgres"}, {Name: "shop"}}}
			c.change(&f)
			got := CheckCarry(f)
			switch {
			case c.reason == "" && len(got) == 0:
			case len(got) != 1 || got[0].Reason != c.reason || !slices.Equal(got[0].Objects, []string{c.object}):
				t.Errorf("it says %+v, want %s of %s", got, c.reason, c.object)
			case got[0].Message == "":
				t.Error("it does not say what to do")
			}
		})
	}
}
