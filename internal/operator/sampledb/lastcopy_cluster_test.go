package sampledb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlevent "sigs.k8s.io/controller-runtime/pkg/event"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/ha"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/protocol"
)

// Who deletes a claim.
const (
	byOperator  = "the operator"
	byCollector = "the garbage collector"
	byUser      = "the user"
	byRebuild   = "kubectl toban rebuild"
)

// history is what one database has acknowledged, from its beginning or from a restore in place on.
type history struct {
	identifier string
	// acknowledged is how many commits are, archived how many of them the last complete backup has.
	acknowledged, archived int
	voters                 []string
	// replaced says that a restore in place has taken its place, as its user has confirmed.
	replaced bool
	// givenUp says that its data may go: Delete was said.
	givenUp bool
}

// disk is what lies on a volume.
type disk struct {
	of  *history // nil while it is empty
	has int
	// prepared is the restore in place that has made its data here, and taken the one that has taken its place; aside
	// are those whose replaced data is here.
	prepared, taken string
	aside           []string
}

// cluster is a model of all around the operator: Kubernetes' controllers, the agents, and who takes backups.
type cluster struct {
	*apiServer
	disks     map[types.UID]*disk // by claim
	histories []*history
	mu        sync.Mutex
	configs   map[types.UID]protocol.Config // what agents were told, by Pod
	silent    map[string]bool               // instances whose agents don't answer
	leader    string
	term      uint64
	// read is the SampleDB as the operator has it in the reconcile that is under way, or was the last.
	read *v1.SampleDB
	// keeps are the SampleDBs whose deletion was no wish about their data.
	keeps map[types.UID]bool
}

const modelDB = "x"

func (c *cluster) db() *v1.SampleDB { return have[*v1.SampleDB](c.apiServer, kindSampleDB, modelDB) }
func (c *cluster) set() *appsv1.StatefulSet {
	return have[*appsv1.StatefulSet](c.apiServer, kindSet, naming.StatefulSet(modelDB))
}
func (c *cluster) pod(name string) *corev1.Pod { return have[*corev1.Pod](c.apiServer, kindPod, name) }
func (c *cluster) claim(ordinal int) *corev1.PersistentVolumeClaim {
	return have[*corev1.PersistentVolumeClaim](c.apiServer, kindClaim, naming.Claim(modelDB, ordinal))
}

// disk is that of an instance whose Pod runs, nil where none does.
func (c *cluster) disk(name string) *disk {
	ordinal, _ := naming.Ordinal(name)
	claim, pod := c.claim(ordinal), c.pod(name)
	if claim == nil || pod == nil || pod.Status.Phase != corev1.PodRunning {
		return nil
	}
	return c.disks[claim.UID]
}

// running are the instances whose agents run.
func (c *cluster) running() []string {
	var names []string
	for _, pod := range all[*corev1.Pod](c.apiServer, kindPod) {
		if c.disk(pod.Name) != nil {
			names = append(names, pod.Name)
		}
	}
	return names
}

// controlSet is the StatefulSet controller: Pods and claims come, and Pods go.
func (c *cluster) controlSet() {
	set := c.set()
	if set == nil || set.DeletionTimestamp != nil {
		return
	}
	if set.Status.ObservedGeneration != set.Generation {
		change(c.apiServer, kindSet, set, func(s *appsv1.StatefulSet) { s.Status.ObservedGeneration = s.Generation })
	}
	owner := *metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind(kindSet))
	for i := range int(*set.Spec.Replicas) {
		if c.claim(i) == nil {
			claim := set.Spec.VolumeClaimTemplates[0].DeepCopy()
			claim.Name = naming.Claim(modelDB, i)
			_ = c.create(claim)
		}
		name := naming.Instance(modelDB, i)
		if pod := c.pod(name); pod == nil {
			_ = c.create(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: set.Spec.Template.Labels,
				OwnerReferences: []metav1.OwnerReference{owner}}, Spec: corev1.PodSpec{Volumes: claimVolume(i)}})
		} else if metav1.GetControllerOf(pod) == nil {
			change(c.apiServer, kindPod, pod,
				func(p *corev1.Pod) { p.OwnerReferences = []metav1.OwnerReference{owner} })
		}
	}
	for _, pod := range all[*corev1.Pod](c.apiServer, kindPod) {
		if n, _ := naming.Ordinal(pod.Name); n >= int(*set.Spec.Replicas) && metav1.IsControlledBy(pod, set) {
			c.stop(pod)
		}
	}
}

func claimVolume(ordinal int) []corev1.Volume {
	return []corev1.Volume{{Name: naming.VolumeData, VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: naming.Claim(modelDB, ordinal)},
	}}}
}

// stop has a Pod end; it is gone when the kubelet says so.
func (c *cluster) stop(pod *corev1.Pod) {
	if pod.DeletionTimestamp == nil {
		at := metav1.NewTime(c.now)
		change(c.apiServer, kindPod, pod,
			func(p *corev1.Pod) { p.DeletionTimestamp, p.Finalizers = &at, []string{"kubelet"} })
	}
}

// runPods is the kubelet: Pods start on their volumes, and end; and then claims that are being deleted are gone.
func (c *cluster) runPods() {
	for _, pod := range all[*corev1.Pod](c.apiServer, kindPod) {
		ordinal, _ := naming.Ordinal(pod.Name)
		claim := c.claim(ordinal)
		switch {
		case pod.DeletionTimestamp != nil:
			delete(c.configs, pod.UID)
			change(c.apiServer, kindPod, pod, func(p *corev1.Pod) { p.Finalizers = nil })
		case pod.Status.Phase != corev1.PodRunning && claim != nil && claim.DeletionTimestamp == nil:
			c.start(pod, claim, ordinal)
		}
	}
	for _, claim := range all[*corev1.PersistentVolumeClaim](c.apiServer, kindClaim) {
		ordinal, _ := naming.Ordinal(claim.Name)
		pod := c.pod(naming.Instance(modelDB, ordinal)) // one that was not put anywhere yet does not hold its claim
		if claim.DeletionTimestamp != nil && (pod == nil || pod.Status.Phase == "") {
			delete(c.disks, claim.UID)
			change(c.apiServer, kindClaim, claim, func(o *corev1.PersistentVolumeClaim) { o.Finalizers = nil })
		}
	}
}

func (c *cluster) start(pod *corev1.Pod, claim *corev1.PersistentVolumeClaim, ordinal int) {
	if claim.Status.Phase != corev1.ClaimBound {
		change(c.apiServer, kindClaim, claim,
			func(o *corev1.PersistentVolumeClaim) { o.Status.Phase = corev1.ClaimBound })
	}
	if c.disks[claim.UID] == nil {
		c.disks[claim.UID] = &disk{}
	}
	change(c.apiServer, kindPod, pod, func(p *corev1.Pod) {
		p.Status.Phase, p.Status.PodIP = corev1.PodRunning, fmt.Sprintf("10.0.0.%d", ordinal)
	})
	if object := have[*corev1.ConfigMap](c.apiServer, kindConfig, naming.ConfigMap(modelDB)); object != nil {
		config, err := desired.ParseConfig(object)
		if err == nil {
			c.configs[pod.UID] = config
			c.takeOver(pod.Name, c.disks[claim.UID], config)
		}
	}
}

// takeOver is what an agent does first after a restore in place.
func (c *cluster) takeOver(name string, d *disk, config protocol.Config) {
	id := config.Restored
	if id == "" || d.prepared != id || d.taken == id || d.of == nil {
		return
	}
	if !config.RemoveBefore {
		d.aside = append(d.aside, id)
	}
	next := &history{identifier: d.of.identifier, acknowledged: 1, voters: []string{name}}
	for _, h := range c.histories {
		h.replaced = h.replaced || h.identifier == next.identifier
	}
	c.histories = append(c.histories, next)
	d.of, d.has, d.taken = next, 1, id
}

// collect is the garbage collector.
func (c *cluster) collect() {
	if db := c.db(); db != nil && db.DeletionTimestamp != nil {
		c.propagate(kindSampleDB, db)
	}
	if set := c.set(); set != nil && set.DeletionTimestamp != nil {
		c.propagate(kindSet, set)
	}
	c.eachOwned(func(kind string, object client.Object, owner metav1.OwnerReference) {
		o := have[client.Object](c.apiServer, owner.Kind, owner.Name)
		if o == nil || o.GetUID() != owner.UID {
			c.removeOwned(kind, object)
		}
	})
}

func (c *cluster) eachOwned(do func(kind string, object client.Object, owner metav1.OwnerReference)) {
	for _, kind := range []string{kindClaim, kindSet, kindPod, kindJob, kindLease, kindConfig} {
		for _, object := range all[client.Object](c.apiServer, kind) {
			if owner := metav1.GetControllerOf(object); owner != nil {
				do(kind, object, *owner)
			}
		}
	}
}

func (c *cluster) removeOwned(kind string, object client.Object) {
	if pod, ok := object.(*corev1.Pod); ok {
		c.stop(pod)
		return
	}
	c.remove(kind, object.GetName(), byCollector, metav1.DeletePropagationBackground)
}

// propagate does what the deletion of an owner asks for besides.
func (c *cluster) propagate(kind string, owner client.Object) {
	orphans := slices.Contains(owner.GetFinalizers(), metav1.FinalizerOrphanDependents)
	first := slices.Contains(owner.GetFinalizers(), metav1.FinalizerDeleteDependents)
	if !orphans && !first {
		return
	}
	left := 0
	c.eachOwned(func(kind string, object client.Object, by metav1.OwnerReference) {
		if by.UID != owner.GetUID() {
			return
		}
		left++
		if orphans {
			change(c.apiServer, kind, object, func(o client.Object) { o.SetOwnerReferences(nil) })
		} else {
			c.removeOwned(kind, object)
		}
	})
	if left > 0 {
		return // the note goes when all are seen to be gone
	}
	change(c.apiServer, kind, owner, func(o client.Object) {
		o.SetFinalizers(slices.DeleteFunc(slices.Clone(o.GetFinalizers()), func(f string) bool {
			return f == metav1.FinalizerOrphanDependents || f == metav1.FinalizerDeleteDependents
		}))
	})
}

// leading is the history that the leader leads, nil where there is none that takes writes.
func (c *cluster) leading() *history {
	d := c.disk(c.leader)
	if d == nil || d.of == nil || d.of.replaced || !c.majority(d.of) {
		return nil
	}
	return d.of
}

// majority says that of a history's voters more than half run with its data.
func (c *cluster) majority(h *history) bool {
	count := 0
	for _, name := range h.voters {
		if d := c.disk(name); d != nil && d.of == h {
			count++
		}
	}
	return 2*count > len(h.voters)
}

// elect has the voter lead that has most, if a majority runs; or the first member makes a database where none has any.
func (c *cluster) elect() {
	c.makeData()
	if c.leading() != nil {
		return
	}
	c.leader = ""
	for _, name := range c.running() {
		d := c.disk(name)
		if d.of == nil || d.of.replaced || !slices.Contains(d.of.voters, name) || !c.majority(d.of) || c.foreign(name) {
			continue
		}
		if best := c.disk(c.leader); best == nil || best.has < d.has {
			c.leader = name
		}
	}
	c.term++
}

// makeData is what the first member does where no instance has any data, nor is known to have had.
func (c *cluster) makeData() {
	first := naming.Instance(modelDB, 0)
	d, pod := c.disk(first), c.pod(first)
	if d == nil || d.of != nil || c.configs[pod.UID].SystemIdentifier != "" || len(c.configs[pod.UID].Members) == 0 {
		return
	}
	for _, m := range c.configs[pod.UID].Members {
		if other := c.disk(m.Name); other == nil || other.of != nil {
			return
		}
	}
	c.version++
	h := &history{identifier: fmt.Sprintf("7%018d", c.version), voters: []string{first}}
	c.histories = append(c.histories, h)
	d.of, c.leader = h, first
}

// foreign says that an instance has another database than its config says.
func (c *cluster) foreign(name string) bool {
	d, config := c.disk(name), c.configs[c.pod(name).UID]
	return d.of != nil && config.SystemIdentifier != "" && config.SystemIdentifier != d.of.identifier
}

// replicate has the standbys that run copy and follow the leader, and the leader change who counts.
func (c *cluster) replicate() {
	h := c.leading()
	if h == nil {
		return
	}
	leader := c.disk(c.leader)
	for _, name := range c.running() {
		d := c.disk(name)
		if d != leader && !c.foreign(name) && (d.of == nil || d.of.identifier == h.identifier) {
			d.of, d.has = h, leader.has
		}
	}
	current := func(name string) bool {
		d := c.disk(name)
		return d != nil && d.of == h && d.has == leader.has
	}
	voters := c.candidates(h, current)
	if lagging := slices.DeleteFunc(slices.Clone(voters), current); 2*len(lagging) < len(voters) {
		h.voters = voters
	}
}

// candidates are who may count from now on: who counts already and has a claim, who has all, and the leader.
func (c *cluster) candidates(h *history, current func(string) bool) []string {
	var voters []string
	for i, m := range c.configs[c.pod(c.leader).UID].Members {
		if c.claim(i) != nil && slices.Contains(h.voters, m.Name) || current(m.Name) {
			voters = append(voters, m.Name)
		}
	}
	if !slices.Contains(voters, c.leader) {
		voters = append(voters, c.leader)
	}
	return voters
}

// write has a client commit something, which a majority of the voters has before it is acknowledged.
func (c *cluster) write() {
	h := c.leading()
	if h == nil || c.configs[c.pod(c.leader).UID].Closed {
		return
	}
	leader, count := c.disk(c.leader), 1
	leader.has++
	for _, name := range h.voters {
		if d := c.disk(name); d != nil && d != leader && d.of == h && (2*count <= len(h.voters) || c.IntN(3) > 0) {
			d.has = leader.has
			count++
		}
	}
	if 2*count > len(h.voters) {
		h.acknowledged = leader.has
	}
}

// endBackup ends the oldest backup that is under way, well if somebody leads, with all that there is.
func (c *cluster) endBackup() {
	for _, b := range all[*v1.DatabaseBackup](c.apiServer, kindBackup) {
		if b.Status.CompletedAt != nil {
			continue
		}
		at, h := metav1.NewTime(c.now), c.leading()
		db := c.db()
		ok := h != nil && db != nil && c.IntN(4) > 0
		if !ok && c.IntN(4) > 0 {
			return
		}
		change(c.apiServer, kindBackup, b, func(b *v1.DatabaseBackup) {
			b.Status.CompletedAt = &at
			state := metav1.Condition{Type: v1.ConditionComplete, Status: metav1.ConditionFalse, Reason: "Failed"}
			if ok {
				h.archived = max(h.archived, c.disk(c.leader).has)
				state.Status, state.Reason = metav1.ConditionTrue, "Completed"
				b.Status.ID, b.Status.Archive = b.Name, &v1.ArchiveReference{
					Path: naming.ArchivePath(modelNamespace, modelDB, string(db.UID)), Claim: naming.Archive(modelDB)}
			}
			meta.SetStatusCondition(&b.Status.Conditions, state)
		})
		return
	}
}

// endRestore ends the Job of a restore in place, whose data is then on the volume that it was given.
func (c *cluster) endRestore() {
	for _, job := range all[*batchv1.Job](c.apiServer, kindJob) {
		if job.Labels[naming.LabelComponent] != naming.ComponentRestore || len(job.Status.Conditions) > 0 ||
			c.read == nil || c.read.Spec.Restore == nil {
			continue
		}
		for _, v := range job.Spec.Template.Spec.Volumes {
			if v.PersistentVolumeClaim == nil {
				continue
			}
			claim := have[*corev1.PersistentVolumeClaim](c.apiServer, kindClaim, v.PersistentVolumeClaim.ClaimName)
			if claim != nil && c.disks[claim.UID] != nil {
				c.disks[claim.UID].prepared = c.read.Spec.Restore.ID
			}
		}
		change(c.apiServer, kindJob, job, func(j *batchv1.Job) {
			j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
		})
	}
}

var errSilent = errors.New("the agent does not answer")

// Sync is of Agents.
func (c *cluster) Sync(
	_ context.Context, _ types.UID, host string, config protocol.Config,
) (protocol.Status, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, pod := range all[*corev1.Pod](c.apiServer, kindPod) {
		if pod.Status.PodIP != host || c.silent[pod.Name] || c.disk(pod.Name) == nil {
			continue
		}
		c.configs[pod.UID] = config
		return c.status(pod.Name), nil
	}
	return protocol.Status{}, errSilent
}

func (c *cluster) status(name string) protocol.Status {
	d := c.disk(name)
	out := protocol.Status{Name: name, Term: c.term, Data: protocol.DataEmpty}
	if d.of == nil {
		return out
	}
	h := c.leading()
	out.Data, out.SystemIdentifier = protocol.DataPresent, d.of.identifier
	out.Election.Voter, out.Room = c.voter(name), c.room(name)
	switch {
	case name == c.leader && h != nil:
		out.Role, out.Ready, out.Voters = protocol.RolePrimary, true, slices.Clone(h.voters)
		out.Closed = c.configs[c.pod(name).UID].Closed
		out.Election.Configuration = ha.Configuration{Version: 1, Now: ha.Quorum{Voters: c.votersOf(h)}}
	case h != nil && d.of == h && d.has == c.disk(c.leader).has:
		out.Role, out.Ready, out.Streaming = protocol.RoleStandby, true, true
	}
	return out
}

// voter is what an instance is as a voter: another one with each volume.
func (c *cluster) voter(name string) ha.Voter {
	ordinal, _ := naming.Ordinal(name)
	return ha.Voter(name + "." + string(c.claim(ordinal).UID))
}

// votersOf are those of a history that have its data.
func (c *cluster) votersOf(h *history) (voters []ha.Voter) {
	for _, name := range h.voters {
		if d := c.disk(name); d != nil && d.of == h {
			voters = append(voters, c.voter(name))
		}
	}
	return voters
}

// room is what an agent says of its volume, on which there is little.
func (c *cluster) room(name string) *protocol.Room {
	ordinal, _ := naming.Ordinal(name)
	size := c.claim(ordinal).Spec.Resources.Requests.Storage().Value()
	return &protocol.Room{Size: size, Used: size / 100, PerDay: new(int64)}
}

// Restart is of Agents.
func (c *cluster) Restart(context.Context, types.UID, string, protocol.Config, string) error {
	return nil
}

// Publish is of Agents.
func (c *cluster) Publish(context.Context, types.UID, string, protocol.Config) error { return nil }

// Switchover is of Agents.
func (c *cluster) Switchover(
	_ context.Context, _ types.UID, _ string, _ protocol.Config, request protocol.Switchover,
) (protocol.Status, error) {
	h := c.leading()
	if h == nil {
		return protocol.Status{}, nil
	}
	has := c.disk(c.leader).has
	for _, name := range h.voters {
		d := c.disk(name)
		asked := request.To == name || request.To == ""
		if asked && name != c.leader && d != nil && d.of == h && d.has == has {
			c.leader = name
			c.term++
			break
		}
	}
	return protocol.Status{}, nil
}

// Password is of Agents.
func (c *cluster) Password(
	context.Context, types.UID, string, protocol.Config, protocol.PasswordRequest,
) (protocol.PasswordResult, error) {
	return protocol.PasswordResult{}, errSilent
}

// Forget is of Agents.
func (c *cluster) Forget(types.UID) {}

// Changed is of Agents.
func (c *cluster) Changed() <-chan ctrlevent.GenericEvent { return nil }

// Begin is of Pods.
func (c *cluster) Begin(context.Context, string, string, protocol.Config, protocol.UpgradeBegin) error {
	return errSilent
}

// Progress is of Pods.
func (c *cluster) Progress(context.Context, string, string, protocol.Config) (protocol.BackupProgress, error) {
	return protocol.BackupProgress{}, errSilent
}
