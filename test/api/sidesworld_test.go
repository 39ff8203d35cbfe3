package api

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/sampledb"
	"toban.dev/internal/protocol"
	"toban.dev/test/played"
)

// homeIdentifier is the system identifier of blue's data once it is upgraded too.
const homeIdentifier = "7599999999999999999"

// position is where green's copy ends, archivedTo is what the archive has by then.
const (
	position   = "0/7000060"
	archivedTo = "0/8000000"
)

// sidesPods plays the Pods of a blue/green upgrade too: that which changes sides waits to be told to begin.
type sidesPods struct {
	*upgradePods
	// begun are the upgrades for which it was told so since it was played; result is what it says from then on.
	begun  []string
	result *protocol.SidesResult
}

func (p *sidesPods) Progress(
	ctx context.Context, identity, host string, config protocol.Config,
) (protocol.BackupProgress, error) {
	switch identity {
	case naming.IdentityUpgrade:
		return p.upgradePods.Progress(ctx, identity, host, config)
	case naming.IdentitySides:
	default:
		return replaying{}.Progress(ctx, identity, host, config)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.begun) == 0 {
		return protocol.BackupProgress{Step: protocol.StepAwaitsBegin}, nil
	}
	return protocol.BackupProgress{Step: "hands over", Sides: p.result}, nil
}

func (p *sidesPods) Begin(
	ctx context.Context, identity, host string, config protocol.Config, begin protocol.UpgradeBegin,
) error {
	if identity != naming.IdentitySides {
		return p.upgradePods.Begin(ctx, identity, host, config, begin)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begun = append(p.begun, begin.ID)
	return nil
}

// sides is a world in which a SampleDB of 17 is to become one of 18 by a second side. Both are reconciled by the same
// operator, as the test says.
type sides struct {
	*majors
	taker *taker
	pods  *sidesPods
	// steps are those that blue has been at.
	steps []string
}

// newSides is a world with a SampleDB x whose archive works.
func newSides(t *testing.T) (*sides, *v1.SampleDB) {
	t.Helper()
	m := newMajors(t)
	s := &sides{majors: m, taker: m.taker(), pods: &sidesPods{upgradePods: m.pods}}
	s.reconciler.Pods = s.pods
	db := s.recorded(archived)
	state := works
	db = s.step(s.archive(db, &state))
	first := &v1.DatabaseBackup{}
	s.read(s.backups()[0], first)
	s.taker.complete(first)
	db = s.step(db)
	s.expect(db, v1.ConditionReady, metav1.ConditionTrue, v1.ReasonReady)
	s.drainEvents()
	return s, db
}

// step is reconcile in a time in which no pause is over.
func (s *sides) step(db *v1.SampleDB) *v1.SampleDB {
	s.Helper()
	s.now = s.now.Add(100*time.Millisecond - 10*time.Second)
	db = s.reconcile(db)
	if db != nil && db.Name == "x" && db.Status.Upgrade != nil && db.Status.Upgrade.Sides != nil {
		if is := db.Status.Upgrade.Sides.Step; len(s.steps) == 0 || s.steps[len(s.steps)-1] != is {
			s.steps = append(s.steps, is)
		}
	}
	return db
}

// is expects the step of blue, and which side serves.
func (s *sides) is(db *v1.SampleDB, step, serves string) *v1.UpgradeStatus {
	s.Helper()
	u := db.Status.Upgrade
	if u == nil || u.Sides == nil || u.Sides.Step != step || u.Sides.Serves != serves {
		s.Fatalf("expected the step %s and %s to serve; the upgrade is %s", step, serves, asText(u))
	}
	return u
}

func asText(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// wantsGreen raises the version.
func (s *sides) wantsGreen(db *v1.SampleDB) *v1.SampleDB {
	s.Helper()
	s.edit(db, func(db *v1.SampleDB) {
		db.Spec.Version, db.Spec.Upgrade = 18, &v1.UpgradeSpec{Strategy: v1.StrategyBlueGreen}
	})
	return s.step(s.step(db))
}

// live are the Jobs of a blue/green upgrade, by the words of their commands after `toban work`.
func (s *sides) live(db *v1.SampleDB) map[string]batchv1.Job {
	s.Helper()
	out := map[string]batchv1.Job{}
	for _, job := range s.jobs(db) {
		if job.Labels[naming.LabelComponent] != naming.ComponentSides || job.DeletionTimestamp != nil {
			continue
		}
		words := strings.Join(job.Spec.Template.Spec.Containers[0].Command[2:], " ")
		if _, twice := out[words]; twice {
			s.Errorf("there are two Jobs for %q", words)
		}
		out[words] = job
	}
	return out
}

// podOfSides makes the Pod of the Job that there is for some work, which runs.
func (s *sides) podOfSides(db *v1.SampleDB, words string) *corev1.Pod {
	s.Helper()
	job, there := s.live(db)["sides "+words]
	for range 3 { // what removes waits until its step is on record, and those before have ended
		if !there {
			db = s.step(db)
			job, there = s.live(db)["sides "+words]
		}
	}
	if !there {
		var all []string
		for words := range s.live(db) {
			all = append(all, words)
		}
		slices.Sort(all)
		s.Fatalf("there is no Job for %s, but for %q; the upgrade is %s", words, all, asText(db.Status.Upgrade))
	}
	return s.restorePod(&job, "work-"+string(job.UID[:8]), nil)
}

// ends has the Pod of a step end with a result.
func (s *sides) ends(pod *corev1.Pod, result protocol.SidesResult) {
	s.Helper()
	pod.Status.Phase = corev1.PodSucceeded
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: naming.ContainerSides, Image: "x", ImageID: "x",
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: asText(result)}},
	}}
	s.must(s.api.Status().Update(s.Context(), pod))
}

// endAll has the Pods end that have told by their own word what has come of it.
func (s *sides) endAll(db *v1.SampleDB) {
	s.Helper()
	var all corev1.PodList
	s.must(s.api.List(s.Context(), &all, client.InNamespace(db.Namespace),
		client.MatchingLabels{naming.LabelComponent: naming.ComponentSides}))
	for i := range all.Items {
		if pod := &all.Items[i]; pod.Status.Phase != corev1.PodSucceeded {
			s.ends(pod, handed)
		}
	}
}

// does plays the Pod of some work, which ends with a result.
func (s *sides) does(db *v1.SampleDB, words string, result protocol.SidesResult) *v1.SampleDB {
	s.Helper()
	s.ends(s.podOfSides(db, words), result)
	return s.step(db)
}

var done = protocol.SidesResult{Done: true}

// checked plays the look into blue's databases, and the backup.
func (s *sides) checked(db *v1.SampleDB) *v1.SampleDB {
	s.Helper()
	s.is(db, v1.UpgradeChecking, v1.SideBlue)
	checks, _ := s.upgradeJobs(db)
	if len(checks) != 1 {
		s.Fatalf("there are the checks %v", checks)
	}
	s.podOf(checks[0], `{"from":"17.6","to":"18.1"}`)
	db = s.step(db)
	if db.Status.Upgrade.Backup != "" { // of a try before
		return db
	}
	u := s.is(db, v1.UpgradeBackingUp, v1.SideBlue)
	b := &v1.DatabaseBackup{}
	s.read(naming.UpgradeBackup("x", u.ID), b)
	result := taken
	result.ID = "20261121T031500Z-" + u.ID
	result.Windows = []protocol.Window{{Branch: 1, Earliest: s.now, EarliestLSN: "0/4000100"}}
	s.taker.completeWith(b, result)
	return s.step(db)
}

// published plays the Pod that makes publications and slots, and the archive, which has the WAL a moment later.
func (s *sides) published(db *v1.SampleDB) *v1.SampleDB {
	s.Helper()
	s.is(db, v1.SidesPublishing, v1.SideBlue)
	db = s.does(db, "publish", protocol.SidesResult{Done: true, Position: position})
	if u := s.is(db, v1.SidesPublishing, v1.SideBlue); u.Sides.Position != position {
		s.Errorf("the position is %q", u.Sides.Position)
	}
	if s.find("x-green", &v1.SampleDB{}) {
		s.Error("green is made before the archive has the WAL")
	}
	s.agents.change(hostOf(db, 0), func(a *protocol.Status) { a.Archive = &protocol.ArchiveStatus{LSN: archivedTo} })
	return s.step(db)
}

// green is the second side.
func (s *sides) green() *v1.SampleDB {
	s.Helper()
	return s.sample("x-green")
}

// sample reads a SampleDB.
func (s *sides) sample(name string) *v1.SampleDB {
	s.Helper()
	db := &v1.SampleDB{}
	s.read(name, db)
	return db
}

// says has all agents of a side say whether they let clients in.
func (s *sides) says(db *v1.SampleDB, closed bool) {
	for ordinal := range 2 {
		s.agents.change(hostOf(db, ordinal), func(a *protocol.Status) { a.Closed = closed })
	}
}

// copied plays green: it is restored, and upgraded.
func (s *sides) copied(db *v1.SampleDB) *v1.SampleDB {
	s.Helper()
	s.is(db, v1.SidesCopying, v1.SideBlue)
	green := s.restored(s.step(s.green()))
	s.expect(green, v1.ConditionReady, metav1.ConditionTrue, v1.ReasonReady)
	db = s.step(db)
	s.is(db, v1.SidesCopying, v1.SideBlue)
	if green = s.green(); green.Spec.Version != 18 {
		s.Fatalf("restored, green is to be of %d", green.Spec.Version)
	}
	green = s.inPlace(s.step(green), newIdentifier)
	s.expect(green, v1.ConditionSideClosed, metav1.ConditionTrue, v1.ReasonSideClosed)
	s.shows(green)
	return s.step(db)
}

// shows has the instances of a side show clients the certificate that the side is to show.
func (s *sides) shows(db *v1.SampleDB) {
	shown := protocol.CertificateStatus{Mounted: true, Secret: db.Spec.TLS.SecretName, NotAfter: s.now.AddDate(1, 0, 0)}
	for ordinal := range 2 {
		s.agents.change(hostOf(db, ordinal), func(a *protocol.Status) { a.Certificate = &shown })
	}
	s.expect(s.step(db), v1.ConditionCertificateServed, metav1.ConditionTrue, v1.ReasonCertificateServed)
}

// greenSays says of green, whose own instances are not played, that it is of its version, and whether it is closed.
func (s *sides) greenSays(closed metav1.ConditionStatus) {
	s.Helper()
	green, at := s.green(), metav1.NewTime(s.now)
	green.Status.Major = green.Spec.Version
	meta.SetStatusCondition(&green.Status.Conditions, metav1.Condition{
		Type: v1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1.ReasonReady, LastTransitionTime: at,
	})
	meta.SetStatusCondition(&green.Status.Conditions, metav1.Condition{
		Type: v1.ConditionSideClosed, Status: closed, Reason: v1.ReasonSideClosed, LastTransitionTime: at,
	})
	meta.SetStatusCondition(&green.Status.Conditions, metav1.Condition{
		Type: v1.ConditionCertificateServed, Status: metav1.ConditionTrue, Reason: v1.ReasonCertificateServed,
		LastTransitionTime: at,
	})
	s.must(s.api.Status().Update(s.Context(), green))
}

// restarts has another operator go on.
func (s *sides) restarts() {
	r := s.reconciler
	s.reconciler = &sampledb.Reconciler{
		Client: r.Client, Reader: r.Reader, Agents: r.Agents, Pods: r.Pods, Credentials: r.Credentials,
		Settings: r.Settings, Events: r.Events, Metrics: r.Metrics, Now: r.Now,
	}
}

// nothingIsLeft fails the test unless green is gone, with its certificate and all Jobs.
func (s *sides) nothingIsLeft(db *v1.SampleDB) {
	s.Helper()
	if left := s.live(db); len(left) > 0 {
		s.Errorf("there are the Jobs %v", left)
	}
	if s.find("x-green", &v1.SampleDB{}) {
		s.Error("green is still there")
	}
	s.collectSecrets()
	if s.find("x-green-tls", &corev1.Secret{}) {
		s.Error("its certificate is still there")
	}
	if s.leadsTo() != "x" || s.config(db).Closed {
		s.Errorf("clients are led to %s; blue is closed: %v", s.leadsTo(), s.config(db).Closed)
	}
}

// restored plays green's restore and its first start.
func (s *sides) restored(green *v1.SampleDB) *v1.SampleDB {
	s.Helper()
	job := s.restoreJob(green)
	s.restorePod(job, "green-restore", &backRestored)
	played.Complete(job, metav1.Now())
	s.must(s.api.Status().Update(s.Context(), job))
	green = s.step(green)
	for range 2 {
		s.playCluster(green)
		s.says(green, true)
		green = s.step(green)
	}
	s.kubelet(green, formerImage)
	s.says(green, true)
	green = s.step(s.step(green))
	s.kubelet(green, formerImage)
	return s.step(s.step(green))
}

// inPlace plays the upgrade of a side's own data, in which no client is.
func (s *sides) inPlace(db *v1.SampleDB, identifier string) *v1.SampleDB {
	s.Helper()
	s.pods.waits, s.pods.upgradePods.begun, s.pods.upgradePods.result = true, nil, nil
	for range 30 {
		step := ""
		if u := db.Status.Upgrade; u != nil {
			step = u.Step
		}
		switch step {
		case v1.UpgradePulling:
			db = s.pulls(db)
		case v1.UpgradeUpgraded:
			return s.step(db)
		default:
			s.plays(db, step, identifier)
			db = s.step(db)
		}
	}
	s.Fatalf("the data of %s is not upgraded: %s", db.Name, asText(db.Status.Upgrade))
	return nil
}

// plays does what the cluster and the Pods of an upgrade in place do in a step of it.
func (s *sides) plays(db *v1.SampleDB, step, identifier string) {
	s.Helper()
	checks, jobs := s.upgradeJobs(db)
	switch step {
	case v1.UpgradeChecking:
		s.runs(checks, `{"from":"17.6","to":"18.1"}`)
	case v1.UpgradePreparing:
		s.runs(jobs, "")
	case v1.UpgradeUpgrading:
		s.stops(db)
		// an instance of green that is not ready has nothing to do with blue's data
		if db.Name == "x" && s.find(naming.Green(db.Name), &v1.SampleDB{}) {
			s.greenIs(metav1.ConditionFalse)
		}
		if len(s.pods.upgradePods.begun) > 0 {
			s.pods.upgradePods.result = &protocol.UpgradeResult{
				From: "17.6", To: "18.1", Method: protocol.MethodLink, SystemIdentifier: identifier,
			}
		}
	case v1.UpgradeStarting:
		if set, _ := s.template(db); *set.Spec.Replicas == 2 {
			s.startsAnew(db, identifier)
			s.says(db, true)
		}
	}
}

// runs makes the Pods of Jobs that have none.
func (s *sides) runs(jobs []batchv1.Job, result string) {
	s.Helper()
	for _, job := range jobs {
		if !s.find(job.Name+"-pod", &corev1.Pod{}) {
			s.podOf(job, result)
		}
	}
}

// config is what the agents of a side are told.
func (s *sides) config(db *v1.SampleDB) protocol.Config {
	s.Helper()
	object := &corev1.ConfigMap{}
	s.read(naming.ConfigMap(db.Name), object)
	config, err := desired.ParseConfig(object)
	s.must(err)
	return config
}

// leadsTo is the side whose Pods the Services of x select.
func (s *sides) leadsTo() string {
	s.Helper()
	var all []string
	for _, name := range []string{naming.ReadWriteService("x"), naming.ReadOnlyService("x")} {
		service := &corev1.Service{}
		s.read(name, service)
		all = append(all, service.Spec.Selector[naming.LabelSampleDB])
	}
	if all[0] != all[1] {
		s.Errorf("the Services lead to %q", all)
	}
	return all[0]
}
