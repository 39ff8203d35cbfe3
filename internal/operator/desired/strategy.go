package desired

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/change/bluegreen"
	"toban.dev/internal/change/major"
	"toban.dev/internal/naming"
)

// BlueGreen says that the SampleDB is to move on to another major version by a second side.
func BlueGreen(db *v1.SampleDB) bool {
	return db.Spec.Upgrade != nil && db.Spec.Upgrade.Strategy == v1.StrategyBlueGreen
}

// StrategyFacts are the facts about a SampleDB that may keep it from that.
func StrategyFacts(db *v1.SampleDB) bluegreen.StrategyFacts {
	out := bluegreen.StrategyFacts{
		Name: db.Name, LongestName: naming.MaxNameBlueGreen, From: Major(db),
		NoArchive: Backup(db) == nil, Pooler: db.Spec.Pooler != nil, Readers: MostReaders(db) > 0,
		Relay: db.Spec.Service.Route == v1.RouteRelay, OwnCertificate: db.Spec.TLS.SecretName != "",
	}
	if o := metav1.GetControllerOf(db); o != nil && o.Kind == "PostgreSQL" {
		out.PostgreSQL = o.Name
	}
	return out
}

// WayBack is what is known of what leads back after an upgrade in place that the spec asks for.
func WayBack(db *v1.SampleDB) major.WayBack {
	out := major.WayBack{To: int(db.Spec.Version), Archive: Backup(db) != nil}
	out.Backup = out.Archive
	if spec := db.Spec.Upgrade; spec != nil {
		out.Method = string(spec.Method)
		out.Backup = out.Archive && spec.Backup != v1.UpgradeBackupNone
	}
	return out
}
