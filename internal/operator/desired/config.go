package desired

import (
	"cmp"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
	"toban.dev/internal/work/initjob"
)

// Known is what a config has besides the spec. Each is kept once it is known.
type Known struct {
	// Major is the major version of PostgreSQL that runs, 0 for that of the spec. FirstMajor is the one that the
	// SampleDB has begun with, 0 for the same.
	Major, FirstMajor int
	// SystemIdentifier is PostgreSQL's.
	SystemIdentifier string
	// Authority is the certificate (PEM) of the SampleDB's authority, or those of all that are trusted.
	Authority string
	// Operator is the certificate (PEM) of the operator's authority.
	Operator string
	// Given are the authorities (PEM) of certificates that users give the servers.
	Given string
	// Witness is the UID of the Lease.
	Witness string
	// Restored is the id of the last restore in place, Upgraded that of the last upgrade.
	Restored, Upgraded string
	// Survivor is the instance that goes on with its own data as that of Restored, "" where a restore has made it.
	Survivor string
	// RestoredBefore is the id of the last one that the spec has asked for, where Restored is none of the spec's.
	RestoredBefore string
	// Preferred are the members in the order in which they should lead; empty where all are alike.
	Preferred []string
	// Left says that the SampleDB is deleted and leaves its data, whatever its deletionPolicy says.
	Left bool
	// Readers is how many readers there are or come.
	Readers int
	// Least is how many members there are at least, whatever the spec wants.
	Least int
}

// Config is what the agents of a SampleDB must know, without addresses.
func Config(db *v1.SampleDB, known Known) protocol.Config {
	versions := Versions{cmp.Or(known.Major, Major(db)), known.FirstMajor}
	if versions.First == versions.Running {
		versions.First = 0
	}
	stops := db.DeletionTimestamp == nil && db.Status.Stop.Closed()
	archive := Archive(db, known.Authority, versions)
	if archive != nil && stops {
		archive.MaxLag = 0 // nobody waits for it but the stop
	}
	return protocol.Config{
		Cluster:          db.Name,
		Namespace:        db.Namespace,
		Major:            versions.Running,
		FirstMajor:       versions.First,
		Members:          members(db, known.Least),
		Preferred:        known.Preferred,
		Readers:          known.Readers,
		SystemIdentifier: known.SystemIdentifier,
		Parameters:       Parameters(db),
		HBA:              db.Spec.PostgreSQL.HBA,
		Authority:        known.Authority,
		Operator:         known.Operator,
		ServerNames:      serverNames(db),
		Certificate:      certificate(db),
		Given:            known.Given,
		Durability:       durability(db),
		Witness:          known.Witness,
		Archive:          archive,
		Restored:         known.Restored,
		Survivor:         known.Survivor,
		Upgraded:         known.Upgraded,
		RemoveUpgraded:   accepted(db),
		RemoveBefore:     db.Spec.Restore != nil && db.Spec.Restore.Before == v1.BeforeDelete,
		RestoredBefore:   known.RestoredBefore,
		Prepares:         prepares(db, known),
		// What is committed after the last backup would be lost, also where the deletionPolicy is another meanwhile.
		// During an upgrade it would be in the former data only, and before a stop not known to be in the archive.
		// Of two sides one serves, also where they are deleted.
		Closed:  db.DeletionTimestamp != nil && !known.Left || db.Status.Upgrade.Closed() || stops || sideClosed(db),
		Link:    linked(db),
		Metrics: metrics(db),
		Pooler:  db.Spec.Pooler != nil,
		Relay:   db.Spec.Service.Route == v1.RouteRelay,

		Idles: db.Spec.Sleep() > 0,
		Holds: db.DeletionTimestamp == nil && db.Status.Stop.Sleeps(),

		ReadMaxLag: ptr.Deref(db.Spec.Service.ReadMaxLag, metav1.Duration{}).Duration,
	}.Revise()
}

// prepares says that a restore in place is to be done: one of the spec, or one that the operator has begun by itself.
func prepares(db *v1.SampleDB, known Known) bool {
	done := func(id string) bool { return id == known.Restored || id == known.RestoredBefore }
	r := db.Status.Restore
	return db.Spec.Restore != nil && !done(db.Spec.Restore.ID) ||
		r != nil && r.Cause == v1.CauseDataLost && !done(r.ID)
}

// accepted is the id of an upgrade whose former data is to be removed, "" for none.
func accepted(db *v1.SampleDB) string {
	if u := db.Status.Upgrade; u != nil && u.Accepted && !u.HasSides() { // it is upgraded in place after that
		return u.ID
	}
	return ""
}

func durability(db *v1.SampleDB) string {
	if db.Spec.Durability == v1.DurabilityAsync {
		return protocol.DurabilityAsync
	}
	return protocol.DurabilityQuorum
}

func members(db *v1.SampleDB, least int) []protocol.Member {
	out := make([]protocol.Member, max(Instances(db), least))
	for i := range out {
		out[i] = protocol.Member{
			Name: naming.Instance(db.Name, i),
			Host: naming.InstanceHost(db.Name, db.Namespace, i),
		}
	}
	return out
}

// serverNames are the names that a client with sslmode=verify-full may use.
// cluster.local is only the usual domain, but who has another one leaves it off.
func serverNames(db *v1.SampleDB) []string {
	var names []string
	for _, service := range []string{naming.ReadWriteService(db.Name), naming.ReadOnlyService(db.Name)} {
		host := naming.ServiceHost(service, db.Namespace)
		names = append(names, service, service+"."+db.Namespace, host, host+".cluster.local")
	}
	return append(append(names, "localhost"), ownNames(db)...)
}

// Plan is what the init Job does. Without spec.init it makes the database app,
// owned by the role app.
func Plan(db *v1.SampleDB) initjob.Plan {
	spec := initSpec(db)
	plan := initjob.Plan{
		Hosts:      []string{naming.ServiceHost(naming.ReadWriteService(db.Name), db.Namespace)},
		Database:   spec.Database,
		Owner:      spec.Owner,
		Extensions: spec.Extensions,
		SQL:        sources(spec.SQL),
	}
	// The hosts change with spec.instances, which is no reason to run another Job.
	plan.Hash = Hash(plan)
	plan.Restored = db.Spec.RestoreFrom != nil // so is that
	if db.Status.Upgrade.GreenServes() {       // the Service leads to the other side
		plan.Hosts = nil
	}
	for _, m := range members(db, 0) {
		plan.Hosts = append(plan.Hosts, m.Host)
	}
	return plan
}

// Initialises says that there is something to do for the init Job.
func Initialises(db *v1.SampleDB) bool { return db.Spec.Init == nil || !db.Spec.Init.None }

// AppRole is the role of the Secret NAME-app.
func AppRole(db *v1.SampleDB) string { return initSpec(db).Owner }

// AppDatabase is the database of the Secret NAME-app.
func AppDatabase(db *v1.SampleDB) string { return initSpec(db).Database }

// initSpec is spec.init with its defaults.
func initSpec(db *v1.SampleDB) v1.InitSpec {
	var spec v1.InitSpec
	if db.Spec.Init != nil {
		spec = *db.Spec.Init
	}
	if spec.Database == "" {
		spec.Database = "app"
	}
	if spec.Owner == "" {
		spec.Owner = "app"
	}
	return spec
}

func sources(sql []v1.SQLSource) []initjob.Source {
	var out []initjob.Source
	for i, s := range sql {
		kind, key := sourceKey(s)
		out = append(out, initjob.Source{
			Name:   fmt.Sprintf("%s %s, key %s", kind, key.Name, key.Key),
			Path:   fmt.Sprintf("%s/%s", sqlPath(i), key.Key),
			Secret: s.Secret != nil,
		})
	}
	return out
}

// sourceKey is the kind of an SQL source and where in it the SQL is.
func sourceKey(s v1.SQLSource) (string, v1.KeySelector) {
	switch {
	case s.ConfigMap != nil:
		return "ConfigMap", *s.ConfigMap
	case s.Secret != nil:
		return "Secret", *s.Secret
	}
	return "source", v1.KeySelector{}
}

func sqlPath(index int) string { return fmt.Sprintf("%s/%02d", naming.PathSQL, index) }

// ConfigMap is NAME-config: the agents' config and the init Job's plan.
func ConfigMap(db *v1.SampleDB, config protocol.Config) (*corev1.ConfigMap, error) {
	configText, err := json.MarshalIndent(config, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", naming.KeyConfig, err)
	}
	plan := Plan(db)
	plan.Given = config.Given // which is no reason to run another Job
	planText, err := json.MarshalIndent(plan, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", naming.KeyInit, err)
	}
	return &corev1.ConfigMap{
		ObjectMeta: meta(db, naming.ConfigMap(db.Name)),
		Data: map[string]string{
			naming.KeyConfig:  string(configText) + "\n",
			naming.KeyInit:    string(planText) + "\n",
			naming.KeyTrusted: config.Authority,
		},
	}, nil
}

// ParseConfig reads back the config of a ConfigMap that ConfigMap made.
func ParseConfig(cm *corev1.ConfigMap) (protocol.Config, error) {
	var config protocol.Config
	if err := json.Unmarshal([]byte(cm.Data[naming.KeyConfig]), &config); err != nil {
		return config, fmt.Errorf("read key %s of ConfigMap %s: %w", naming.KeyConfig, cm.Name, err)
	}
	return config, nil
}
