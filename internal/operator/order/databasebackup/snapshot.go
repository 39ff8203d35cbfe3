package databasebackup

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired/volumes"
	"toban.dev/internal/operator/order"
	"toban.dev/internal/operator/pods"
	"toban.dev/internal/protocol"
)

// Cutter tells the Pods of backups that their snapshots are cut; package agents has the real one.
type Cutter interface {
	Cut(ctx context.Context, host string, config protocol.Config, cut protocol.Cut) error
}

// noAPI says that a cluster has no snapshots of volumes.
const noAPI = "the cluster has no VolumeSnapshots (volumesnapshots.snapshot.storage.k8s.io): install the CRDs and " +
	"the controller of external-snapshotter and a CSI driver that has snapshots, or take a backup without spec.method"

// snapshotView is what the decisions about the snapshots of a backup depend on.
type snapshotView struct {
	// api says that the cluster has snapshots of volumes.
	api bool
	// session is the one in which a Pod waits for its snapshot, "" where none is known to.
	session string
	// done is the one that has ended well, "" before the Job has.
	done string
	all  []snapshotSeen
}

// snapshotSeen is one of the backup's VolumeSnapshots.
type snapshotSeen struct {
	name string
	// cut says that what is written from now on is not in it, ready that a volume can be made of it.
	cut, ready bool
	// ending says that it is being deleted, problem what the driver or its controller complains of.
	ending  bool
	problem string
}

// snapshotSteps are what is done about snapshots.
type snapshotSteps struct {
	// create one for the session that waits, tell that session that it is cut.
	create, tell bool
	// remove are the names of those of no use.
	remove []string
}

// of is the snapshot of a session, nil where there is none.
func (v *snapshotView) of(backup, session string) *snapshotSeen {
	name := naming.VolumeSnapshot(backup, session)
	for i := range v.all {
		if v.all[i].name == name && !v.all[i].ending {
			return &v.all[i]
		}
	}
	return nil
}

// steps says what to do, after a decision. Where neither a session nor a result is known, nothing is: a Pod that does
// not answer may well wait.
func (v *snapshotView) steps(backup string, d order.Decision) (out snapshotSteps) {
	session := cmp.Or(v.done, v.session)
	switch {
	case d.Over && d.Reason != v1.ReasonCompleted:
		session = ""
	case session == "":
		return out
	}
	for _, s := range v.all {
		if !s.ending && (session == "" || s.name != naming.VolumeSnapshot(backup, session)) {
			out.remove = append(out.remove, s.name)
		}
	}
	if d.Over || v.done != "" {
		return out
	}
	s := v.of(backup, session)
	out.create, out.tell = s == nil, s != nil && s.cut
	return out
}

// trouble is what is complained of, for the end of a sentence.
func (v *snapshotView) trouble() string {
	if v == nil {
		return ""
	}
	for _, s := range v.all {
		if s.problem != "" && !s.ending {
			return fmt.Sprintf("; of VolumeSnapshot %s is said: %s", s.name, s.problem)
		}
	}
	return ""
}

// finish decides when the Pod has ended well: the backup is complete when its snapshot can be used.
func (v view) finish() order.Decision {
	switch s := v.snapshot.of(v.name, v.snapshot.done); {
	case v.snapshot.done == "":
		return order.Over(v1.ReasonFailed,
			"its Pod was removed before it could say which snapshot it is: take another one")
	case !v.snapshot.api && !v.Cancel && v.Now.Before(v.Deadline):
		return order.Wait(v1.ReasonRunning, noAPI)
	case s == nil:
		return order.Over(v1.ReasonFailed, "its VolumeSnapshot is gone: take another one")
	case s.ready:
		return order.Over(v1.ReasonCompleted, v.Job.Message)
	case v.Cancel:
		return order.Over(v1.ReasonCancelled, "it was cancelled")
	case !v.Now.Before(v.Deadline):
		return order.Over(v1.ReasonDeadlineExceeded, order.Late("the snapshot could not be used yet"+
			v.snapshot.trouble()))
	}
	return order.Wait(v1.ReasonRunning, v.Job.Message+"; waits until it can be used"+v.snapshot.trouble())
}

// observeSnapshots reads the VolumeSnapshots of the backup, past the cache: a cluster need not have the kind, and it is
// looked for again as long as it has not.
func (s *scope) observeSnapshots(ctx context.Context) error {
	if !s.Object.BySnapshot() {
		return nil
	}
	kind := volumes.VolumeSnapshotKind
	_, err := s.Client.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("see whether the cluster has VolumeSnapshots: %w", err)
	}
	var all unstructured.UnstructuredList
	all.SetGroupVersionKind(kind)
	err = s.Reader.List(ctx, &all, client.InNamespace(s.Object.Namespace),
		client.MatchingLabels{naming.LabelSampleDB: s.Object.Spec.SampleDB})
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) { // it was taken away since
		return nil
	}
	if err != nil {
		return fmt.Errorf("list the VolumeSnapshots: %w", err)
	}
	s.seen.hasAPI = true
	for _, one := range all.Items {
		if metav1.IsControlledBy(&one, s.Object) {
			s.seen.snapshots = append(s.seen.snapshots, one)
		}
	}
	return nil
}

// snapshotView is nil for a backup in the archive.
func (s *scope) snapshotView() *snapshotView {
	if !s.Object.BySnapshot() {
		return nil
	}
	out := &snapshotView{api: s.seen.hasAPI}
	if s.seen.progress != nil {
		out.session = s.seen.progress.Session
	}
	if r := s.seen.result; r != nil && r.Error == "" && r.Snapshot != nil {
		out.done = r.Snapshot.ID
	}
	for i := range s.seen.snapshots {
		out.all = append(out.all, seenSnapshot(&s.seen.snapshots[i]))
	}
	return out
}

// seenSnapshot reads the status of a VolumeSnapshot. It is cut when the driver says when; some say it only of one that
// can be used.
func seenSnapshot(in *unstructured.Unstructured) snapshotSeen {
	out := snapshotSeen{name: in.GetName(), ending: in.GetDeletionTimestamp() != nil}
	out.ready, _, _ = unstructured.NestedBool(in.Object, "status", "readyToUse")
	at, _, _ := unstructured.NestedString(in.Object, "status", "creationTime")
	out.cut = at != "" || out.ready
	out.problem, _, _ = unstructured.NestedString(in.Object, "status", "error", "message")
	out.problem = strings.TrimSpace(out.problem)
	return out
}

// actSnapshot does what is to be done about snapshots.
func (s *scope) actSnapshot(ctx context.Context, d order.Decision) error {
	view := s.snapshotView()
	if view == nil {
		return nil
	}
	steps := view.steps(s.Object.Name, d)
	for _, name := range steps.remove {
		if err := s.removeSnapshot(ctx, name); err != nil {
			return err
		}
	}
	switch pod := s.Run.Newest(); {
	case steps.create && s.seen.db != nil:
		want := volumes.VolumeSnapshot(s.seen.db, s.Object, s.seen.progress.Instance, view.session)
		err := s.Client.Create(ctx, want, client.FieldOwner(naming.FieldOwner))
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create VolumeSnapshot %s: %w", want.GetName(), err)
		}
	case steps.tell && pod != nil:
		config, err := pods.ConfigOf(ctx, s.Client, pod)
		if err == nil {
			err = s.Cutter.Cut(ctx, pod.Status.PodIP, config, protocol.Cut{Session: view.session})
		}
		if err != nil {
			log.FromContext(ctx).Info("the Pod could not be told that the snapshot is cut; it is told again",
				"pod", pod.Name, "reason", err.Error())
		}
	}
	return nil
}

// removeSnapshot deletes one of the backup's VolumeSnapshots.
func (s *scope) removeSnapshot(ctx context.Context, name string) error {
	for i := range s.seen.snapshots {
		one := &s.seen.snapshots[i]
		if one.GetName() != name {
			continue
		}
		uid := one.GetUID()
		err := s.Client.Delete(ctx, one, client.Preconditions{UID: &uid})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete VolumeSnapshot %s, which is of no use: %w", name, err)
		}
	}
	return nil
}

// setSnapshot puts into the status which snapshot it is, as soon as its session has ended well: from then on it needs
// its WAL.
func (s *scope) setSnapshot(out *v1.DatabaseBackupStatus) {
	r := s.seen.result
	if r == nil || r.Snapshot == nil || r.Error != "" {
		return
	}
	out.Instance = cmp.Or(r.Instance, out.Instance)
	out.Type, out.StartLSN, out.StopLSN = v1.BackupSnapshot, r.StartLSN, r.StopLSN
	out.ServerVersion, out.SystemIdentifier = r.ServerVersion, r.SystemIdentifier
	s.setStore(out)
	if out.Archive != nil && r.Archive != "" {
		out.Archive.Path = r.Archive
	}
	out.Snapshot = &v1.SnapshotStatus{
		Name: naming.VolumeSnapshot(s.Object.Name, r.Snapshot.ID), ID: r.Snapshot.ID,
		BackupLabel: r.Snapshot.Label, Term: int64(r.Snapshot.Term), //nolint:gosec // terms are small
		Timeline: int64(r.Snapshot.Timeline), StoppedAt: metav1.NewTime(r.Snapshot.Stopped.Truncate(time.Second)),
	}
	for i := range s.seen.snapshots {
		if one := &s.seen.snapshots[i]; one.GetName() == out.Snapshot.Name {
			out.Snapshot.Size, _, _ = unstructured.NestedString(one.Object, "status", "restoreSize")
			out.Size = out.Snapshot.Size
		}
	}
}
