package console

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
)

// Row is a database in the fleet.
type Row struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Phase     string `json:"phase"`
	Level     string `json:"level"`
	// Concern is the condition for which the row has its level; nil where all is well.
	Concern      *Condition   `json:"concern,omitempty"`
	Primary      string       `json:"primary"`
	Ready        string       `json:"ready"`
	Version      string       `json:"version"`
	UpToDate     string       `json:"upToDate"`
	LastBackupAt *metav1.Time `json:"lastBackupAt,omitempty"`
	NoBackups    bool         `json:"noBackups,omitempty"`
	// UsedPercent is that of the fullest volume, FullInDays of the one that is full first.
	UsedPercent *int32 `json:"usedPercent,omitempty"`
	FullInDays  *int32 `json:"fullInDays,omitempty"`
}

// Fleet are the rows of all databases: what needs somebody is first.
func Fleet(dbs []v1.SampleDB) []Row {
	out := []Row{}
	for i := range dbs {
		out = append(out, rowOf(&dbs[i]))
	}
	slices.SortFunc(out, func(a, b Row) int {
		return cmp.Or(urgency(a.Level)-urgency(b.Level), strings.Compare(a.Namespace, b.Namespace),
			strings.Compare(a.Name, b.Name))
	})
	return out
}

func rowOf(db *v1.SampleDB) Row {
	s := db.Status
	row := Row{Namespace: db.Namespace, Name: db.Name, Phase: cmp.Or(s.Phase, "Pending"), Primary: s.Primary,
		Ready: s.Ready, Version: s.Version, UpToDate: "Unknown",
		NoBackups: db.Spec.Backup != nil && db.Spec.Backup.None}
	row.Level, row.Concern = levelAndConcern(db)
	if c := meta.FindStatusCondition(s.Conditions, v1.ConditionUpToDate); c != nil {
		row.UpToDate = string(c.Status)
	}
	if s.Backup != nil {
		row.LastBackupAt = s.Backup.LastBackupAt
	}
	for _, i := range s.InstanceStatuses {
		if v := i.Volume; v != nil {
			if row.UsedPercent == nil || *row.UsedPercent < v.UsedPercent {
				row.UsedPercent = &v.UsedPercent
			}
			if v.FullInDays != nil && (row.FullInDays == nil || *row.FullInDays > *v.FullInDays) {
				row.FullInDays = v.FullInDays
			}
		}
	}
	return row
}

// levelAndConcern say how urgent a database is, and for which of its conditions.
func levelAndConcern(db *v1.SampleDB) (string, *Condition) {
	all := conditionsOf(db)
	switch phase := db.Status.Phase; {
	case phase == phaseStopped, phase == phaseSleeping:
		return LevelOff, nil
	case len(all) == 0 || quiet(phase) && urgency(all[0].Level) > urgency(LevelAct):
		return LevelBusy, nil
	case all[0].Level == LevelWell:
		return LevelWell, nil
	}
	return all[0].Level, &all[0]
}
