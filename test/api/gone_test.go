package api

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/cli/restore"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/protocol"
)

// comesTo plays an upgrade in place up to a step, and a little into it.
func (s *sides) comesTo(db *v1.SampleDB, step string) *v1.SampleDB {
	s.Helper()
	s.pods.waits = true
	s.edit(db, func(db *v1.SampleDB) {
		db.Spec.Version = 18
		db.Spec.Upgrade = &v1.UpgradeSpec{Backup: v1.UpgradeBackupNone, Rehearse: v1.RehearseNever}
	})
	for range 30 {
		is := ""
		if u := db.Status.Upgrade; u != nil {
			is = u.Step
		}
		switch {
		case is == step && step == v1.UpgradeUpgrading:
			s.stops(s.step(db))
			db = s.step(db)
			if len(s.pods.upgradePods.begun) == 0 {
				s.Fatal("the Pod of the upgrade was not told to begin")
			}
			return db
		case is == step:
			return s.step(db)
		case is == v1.UpgradePulling:
			db = s.pulls(db)
		case is == v1.UpgradeClosing:
			db = s.step(db)
			s.says(db, true)
			db = s.step(db)
		default:
			s.plays(db, is, newIdentifier)
			db = s.step(db)
		}
	}
	s.Fatalf("the upgrade does not come to %s: %s", step, asText(db.Status.Upgrade))
	return nil
}

// sidesCome are blue/green upgrades up to a step. The second side is not played.
var sidesCome = map[string]func(*sides, *v1.SampleDB) *v1.SampleDB{
	v1.SidesCopying: func(s *sides, db *v1.SampleDB) *v1.SampleDB {
		return s.step(s.published(s.checked(s.wantsGreen(db))))
	},
	v1.SidesFollowing: func(s *sides, db *v1.SampleDB) *v1.SampleDB { return s.step(s.beside(s.wantsGreen(db))) },
	v1.SidesReady: func(s *sides, db *v1.SampleDB) *v1.SampleDB {
		return s.links(s.beside(s.wantsGreen(db)), "")
	},
	v1.SidesChanging: func(s *sides, db *v1.SampleDB) *v1.SampleDB {
		return s.begins(s.waits(s.links(s.beside(s.wantsGreen(db)), "")))
	},
	v1.SidesChanged: greenServes,
	v1.SidesComingHome: func(s *sides, db *v1.SampleDB) *v1.SampleDB {
		return s.leaves(greenServes(s, db))
	},
}

func greenServes(s *sides, db *v1.SampleDB) *v1.SampleDB {
	db = s.step(s.changes(s.waits(s.links(s.beside(s.wantsGreen(db)), ""))))
	s.greenSays(metav1.ConditionFalse)
	return s.settled(s.step(db))
}

// leaves accepts the upgrade, and has blue stop to follow.
func (s *sides) leaves(db *v1.SampleDB) *v1.SampleDB {
	s.Helper()
	s.edit(db, func(db *v1.SampleDB) {
		metav1.SetMetaDataAnnotation(&db.ObjectMeta, naming.AnnotationAcceptUpgrade, "yes")
	})
	db = s.does(s.step(db), "leave --from-green", done)
	s.is(db, v1.SidesComingHome, v1.SideGreen)
	return db
}

// deletes deletes a SampleDB, and expects no Job of an upgrade to go on.
func (s *sides) deletes(db *v1.SampleDB) *v1.SampleDB {
	s.Helper()
	s.drainEvents()
	s.must(s.api.Delete(s.Context(), db))
	if db = s.step(db); db == nil {
		s.Fatal("the SampleDB is gone before its Pods")
	}
	for _, job := range s.jobs(db) {
		switch job.Labels[naming.LabelComponent] {
		case naming.ComponentUpgrade, naming.ComponentRehearse, naming.ComponentSides, naming.ComponentImage:
			if job.DeletionTimestamp == nil {
				s.Errorf("the Job %s goes on", job.Name)
			}
		}
	}
	return db
}

// leavesBackup has the agents of a SampleDB that is being deleted say that no client is there, and plays its last
// backup.
func (s *sides) leavesBackup(db *v1.SampleDB, version string) *v1.DatabaseBackup {
	s.Helper()
	for range 2 {
		s.kubelet(db, formerImage)
		s.says(db, true)
		s.agents.change(hostOf(db, 0), func(a *protocol.Status) { a.Archive = &works })
		db = s.step(db)
	}
	result := taken
	result.ServerVersion = version
	return s.taker.completeWith(s.taker.final(db), result)
}

// leavesNothing has the Pods of a SampleDB end, and expects it to go with its volumes.
func (s *sides) leavesNothing(db *v1.SampleDB) {
	s.Helper()
	if now := s.step(db); now == nil {
		s.Fatal("the SampleDB is gone before its volumes")
	}
	s.must(s.api.DeleteAllOf(s.Context(), &corev1.Pod{}, client.InNamespace(s.namespace),
		client.MatchingLabels{naming.LabelSampleDB: db.Name}, client.GracePeriodSeconds(0)))
	s.gone(db)
	if green := naming.Green(db.Name); s.find(green, &v1.SampleDB{}) {
		s.Errorf("%s is still there", green)
	}
}

// A SampleDB can be deleted in the middle of an upgrade: no Job of it goes on, the last backup is taken, and nothing is
// left.
func TestDeletedInTheMiddleOfAnUpgrade(t *testing.T) {
	deletedWith(t, v1.DeletionSnapshot, v1.UpgradeUpgrading, v1.SidesChanging)
	deletedWith(t, v1.DeletionDelete, v1.SidesFollowing)
}

// The same in every other step. TestDeletedInTheMiddleOfAnUpgrade has those in which most is under way.
func TestLongDeletedInEveryStepOfAnUpgrade(t *testing.T) {
	inPlace := []string{v1.UpgradeChecking, v1.UpgradePreparing, v1.UpgradeClosing, v1.UpgradeStarting}
	deletedWith(t, v1.DeletionSnapshot, append(inPlace, v1.SidesCopying, v1.SidesFollowing, v1.SidesReady)...)
	deletedWith(t, v1.DeletionDelete, append(inPlace, v1.UpgradeUpgrading, v1.SidesCopying, v1.SidesReady,
		v1.SidesChanging, v1.SidesChanged, v1.SidesComingHome)...)
}

// deletedWith deletes a SampleDB in steps of an upgrade. Who has said Delete waits for nothing.
func deletedWith(t *testing.T, policy v1.DeletionPolicy, steps ...string) {
	for _, step := range steps {
		t.Run(string(policy)+"/"+step, func(t *testing.T) {
			s, db := newSides(t)
			db = s.goesTo(db, step)
			db = s.deletes(s.edit(db, func(db *v1.SampleDB) { db.Spec.DeletionPolicy = policy }))
			if policy == v1.DeletionDelete {
				s.leavesNothing(db)
				return
			}
			version := "17.6"
			if step == v1.UpgradeStarting {
				version = "18.1"
			}
			b := s.leavesBackup(db, version)
			s.leavesNothing(db)
			s.undeletes("x", b.Name)
		})
	}
}

// goesTo plays an upgrade up to a step, by the strategy that has it.
func (s *sides) goesTo(db *v1.SampleDB, step string) *v1.SampleDB {
	s.Helper()
	if come := sidesCome[step]; come != nil {
		return come(s, db)
	}
	return s.comesTo(db, step)
}

// While the second side serves, it alone has the last writes. It goes first, and its last backup is the one that brings
// the SampleDB back.
func TestDeletedWhileTheSecondSideServes(t *testing.T) {
	s, db := newSides(t)
	db = s.copied(s.published(s.checked(s.wantsGreen(db))))
	db = s.leaves(s.settles(s.changes(s.waits(s.links(db, "")))))
	db = s.deletes(s.servesSince(db, time.Now().Add(-time.Hour)))
	s.waiting(db, "x-green, which has served and goes first")
	green := s.step(s.green())
	if green.DeletionTimestamp == nil || green.Spec.DeletionPolicy != "" || !s.config(green).Closed {
		t.Fatalf("green is %s", asText(green))
	}
	b := s.leavesBackup(green, "18.1")
	db = s.step(db)
	s.waiting(db, "the last backup, x-green-final-")
	s.step(green)
	s.must(s.api.DeleteAllOf(s.Context(), &corev1.Pod{}, client.InNamespace(s.namespace),
		client.MatchingLabels(naming.InstanceSelector("x-green")), client.GracePeriodSeconds(0)))
	s.gone(green)
	s.leavesNothing(db)
	if s.find(naming.FinalBackup("x", string(db.UID)), &v1.DatabaseBackup{}) {
		t.Error("a last backup of the former side is taken too")
	}
	if _, err := s.command(t.Context(), restore.Undelete(), "x-green"); err == nil ||
		!strings.Contains(err.Error(), "kubectl toban undelete x") {
		t.Errorf("x-green comes back: %v", err)
	}
	s.undeletes("x", b.Name)
	again := s.sample("x")
	if again.Spec.Version != 18 || again.Annotations[naming.AnnotationSide] != "" ||
		again.Annotations[naming.AnnotationSideOf] != "" || again.Annotations[naming.AnnotationCredentials] == "" {
		t.Errorf("it comes back as %s", asText(again))
	}
}

// undeletes brings a SampleDB back, and expects that to be from a backup.
func (s *sides) undeletes(name, backup string) string {
	s.Helper()
	list, err := s.command(s.Context(), restore.Undelete())
	if err != nil || !strings.Contains(list, backup) {
		s.Errorf("%v; it lists\n%s", err, list)
	}
	out, err := s.command(s.Context(), restore.Undelete(), name, "--wait=false")
	s.must(err)
	if from := s.sample(name).Spec.RestoreFrom; from == nil || from.Backup != backup {
		s.Errorf("it comes back from %s, want %s", asText(from), backup)
	}
	return list + out
}

// servesSince has the second side have begun to serve at a time of the clock by which the API server stamps objects:
// that of the operator runs ahead here.
func (s *sides) servesSince(db *v1.SampleDB, at time.Time) *v1.SampleDB {
	s.Helper()
	since, now := metav1.NewTime(at), s.sample(db.Name)
	now.Status.Upgrade.CompletedAt = &since
	s.must(s.api.Status().Update(s.Context(), now))
	return now
}

// leftByGreen makes the last backup that a second side has left.
func (s *sides) leftByGreen(db *v1.SampleDB) {
	s.Helper()
	const uid = "0a1b2c3d-0000-4000-8000-000000000000"
	b := &v1.DatabaseBackup{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.namespace, Name: naming.FinalBackup("x-green", uid),
			Labels: map[string]string{naming.LabelOwner: uid},
		},
		Spec: v1.DatabaseBackupSpec{SampleDB: "x-green", Deadline: metav1.Duration{Duration: 24 * time.Hour}},
	}
	s.must(s.api.Create(s.Context(), b))
	archive := desired.ArchiveReference(db)
	b.Status.ID, b.Status.Archive = taken.ID, &archive
	b.Status.Manifest = &runtime.RawExtension{Raw: []byte(asText(map[string]any{
		"metadata": map[string]any{"annotations": map[string]string{naming.AnnotationSideOf: "x/" + string(db.UID)}},
	}))}
	meta.SetStatusCondition(&b.Status.Conditions, metav1.Condition{
		Type: v1.ConditionComplete, Status: metav1.ConditionTrue, Reason: v1.ReasonCompleted,
	})
	s.must(s.api.Status().Update(s.Context(), b))
}

// Where the second side that has served is gone, nothing waits for it: the last backup is of what there is, and it is
// said that it may lack something, also to who brings the SampleDB back. What one of an earlier upgrade has left is not
// the last backup.
func TestDeletedWhenTheSecondSideThatServedIsGone(t *testing.T) {
	s, db := newSides(t)
	db = sidesCome[v1.SidesComingHome](s, db)
	s.leftByGreen(db)
	db = s.step(s.deletes(s.servesSince(db, time.Now().Add(time.Hour))))
	if s.find("x-green", &v1.SampleDB{}) {
		t.Fatal("x-green is still there")
	}
	b := s.leavesBackup(db, "17.6")
	if told := s.drainEvents(); !strings.Contains(told, "what was written there last may be missing") {
		t.Errorf("told is %q", told)
	}
	s.leavesNothing(db)
	if out := s.undeletes("x", b.Name); strings.Count(out, "x-green has served") != 2 {
		t.Errorf("it says\n%s", out)
	}
}
