package metrics

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	myappv1 "toban.dev/api/myapp/v1"
	pgv1 "toban.dev/api/postgresql/v1"
	v1 "toban.dev/api/v1"
	"toban.dev/internal/operator/desired"
)

// Kinds shows the PostgreSQLs, the MyApps, and what became of the last DatabaseBackups of each SampleDB. It reads them
// from the operator's cache when it is asked: nothing is kept for a scrape, and nothing is shown of what was deleted.
// It may be asked only of an operator that acts, or each replica would show the same.
type Kinds struct {
	// Reader reads from the operator's cache.
	Reader client.Reader
	// Has says that a SampleDB, or a MyApp, is this operator's.
	Has func(namespace, name string) bool
}

// patience bounds the look into the cache, which fills when the operator begins to act.
const patience = 2 * time.Second

const (
	labelPostgreSQL = "postgresql"
	labelMyApp      = "myapp"
	labelType       = "type"
	labelReason     = "reason"
)

var (
	postgresqlCondition = gaugeOf(labelPostgreSQL, "toban_postgresql_condition",
		"A condition of a PostgreSQL: 1 true, 0 false, -1 unknown.", labelType)
	postgresqlReason = gaugeOf(labelPostgreSQL, "toban_postgresql_condition_reason",
		"1; its labels have the reason that a condition of a PostgreSQL has now.", labelType, labelReason)

	myappCondition = gaugeOf(labelMyApp, "toban_myapp_condition",
		"A condition of a MyApp: 1 true, 0 false, -1 unknown.", labelType)
	myappReason = gaugeOf(labelMyApp, "toban_myapp_condition_reason",
		"1; its labels have the reason that a condition of a MyApp has now.", labelType, labelReason)
	myappWanted = gaugeOf(labelMyApp, "toban_myapp_replicas_wanted",
		"Pods that a MyApp is to have, by its spec or its autoscaler.")
	myappReady = gaugeOf(labelMyApp, "toban_myapp_replicas_ready",
		"Pods of a MyApp that are ready.")
	myappLeader = gaugeOf(labelMyApp, "toban_myapp_leader_known",
		"1 when a Pod of a MyApp leads, else 0; of one that wants a leader.")
)

// gaugesOfKinds are all of them.
var gaugesOfKinds = append([]*gauge{
	postgresqlCondition, postgresqlReason,
	myappCondition, myappReason, myappWanted, myappReady, myappLeader,
}, gaugesOfBackups...)

// Describe tells which metrics there are.
func (k *Kinds) Describe(out chan<- *prometheus.Desc) {
	for _, g := range gaugesOfKinds {
		out <- g.desc
	}
}

// Collect tells what is known now; nothing of a kind that can't be read.
func (k *Kinds) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	pairs := labelPairs{}
	var databases pgv1.PostgreSQLList
	if k.list(ctx, &databases) {
		for i := range databases.Items {
			if pg := &databases.Items[i]; k.hasServerOf(pg) {
				pairs.show(out, client.ObjectKeyFromObject(pg), ofPostgreSQL(pg))
			}
		}
	}
	var apps myappv1.MyAppList
	if k.list(ctx, &apps) {
		for i := range apps.Items {
			if app := &apps.Items[i]; k.Has(app.Namespace, app.Name) {
				pairs.show(out, client.ObjectKeyFromObject(app), ofMyApp(app))
			}
		}
	}
	var backups v1.DatabaseBackupList
	if k.list(ctx, &backups) {
		for db, b := range backupsByDatabase(backups.Items) {
			if k.Has(db.Namespace, db.Name) {
				pairs.show(out, db, b.series())
			}
		}
	}
}

// list reads all of a kind, and says whether it could. They are the cache's own: they must not be changed.
func (k *Kinds) list(ctx context.Context, into client.ObjectList) bool {
	return k.Reader.List(ctx, into, client.UnsafeDisableDeepCopy) == nil
}

// hasServerOf says that a PostgreSQL is this operator's: it goes by the SampleDB that is its server.
func (k *Kinds) hasServerOf(pg *pgv1.PostgreSQL) bool {
	server := desired.ServerOf(pg)
	if server.Namespace == "" {
		server.Namespace = pg.Namespace
	}
	return k.Has(server.Namespace, server.Name)
}

func ofPostgreSQL(pg *pgv1.PostgreSQL) []series {
	return ofConditions(pg.Status.Conditions, postgresqlCondition, postgresqlReason)
}

func ofMyApp(app *myappv1.MyApp) []series {
	out := ofConditions(app.Status.Conditions, myappCondition, myappReason)
	if _, wanted, found := strings.Cut(app.Status.Ready, "/"); found { // as "2/3"
		if n, err := strconv.Atoi(wanted); err == nil {
			out = append(out, myappWanted.is(float64(n)), myappReady.is(float64(app.Status.ReadyReplicas)))
		}
	}
	if app.Spec.Leader {
		known := 0.0
		if app.Status.Leader != "" {
			known = 1
		}
		out = append(out, myappLeader.is(known))
	}
	return out
}

// ofConditions are the series of all conditions, with their reasons.
func ofConditions(conditions []metav1.Condition, condition, reason *gauge) []series {
	out := make([]series, 0, 2*len(conditions))
	for _, c := range conditions {
		out = append(out, condition.is(value(c.Status), c.Type), reason.is(1, c.Type, c.Reason))
	}
	return out
}

// databaseOf is the SampleDB of a backup.
func databaseOf(b *v1.DatabaseBackup) types.NamespacedName {
	return types.NamespacedName{Namespace: b.Namespace, Name: b.Spec.SampleDB}
}
