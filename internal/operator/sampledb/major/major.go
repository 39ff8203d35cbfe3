package major

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/change/major"
	"toban.dev/internal/change/upgrade"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/desired/upgrades"
	"toban.dev/internal/operator/jobs"
	"toban.dev/internal/operator/pods"
	"toban.dev/internal/operator/sampledb/versions"
	"toban.dev/internal/operator/sampledb/world"
	"toban.dev/internal/protocol"
)

// upgradeTopic upgrades to another major version in place.
type upgradeTopic struct{ base }

// podPatience is for how long the Pod of an upgrade may be kept from running while nobody can use the database.
const podPatience = 5 * time.Minute

// recordUpgrade notes in the status, before anything rests on it, which major version the data has, and that the spec
// wants another one. The ConfigMap knows first what the data is. It says whether there was something to note.
func (s *upgradeTopic) recordUpgrade(ctx context.Context) (bool, error) {
	status := s.DB.Status.DeepCopy()
	if major := int32(s.Written.Major); major != 0 && status.Major != major { //nolint:gosec // of a spec
		if status.Major == 0 && s.DB.Spec.Version == major {
			return false, nil // the status gets it at its end, as always
		}
		status.Major = major
	}
	from := cmp.Or(status.Major, s.DB.Spec.Version)
	old := status.Upgrade
	if from < s.DB.Spec.Version && (old == nil || old.To != s.DB.Spec.Version) && !old.HasSides() {
		status.Upgrade = s.newUpgrade(from)
	}
	if status.Major == s.DB.Status.Major && status.Upgrade.SameAs(s.DB.Status.Upgrade) {
		return false, nil
	}
	changed := s.DB.DeepCopy()
	changed.Status = *status
	if err := s.Client.Status().Patch(ctx, changed, client.MergeFrom(s.DB),
		client.FieldOwner(naming.FieldOwner)); err != nil {
		return false, fmt.Errorf("note which major version the data has: %w", err)
	}
	s.Statuses.Note(changed, changed.Status)
	return true, nil
}

// newUpgrade is an upgrade that begins. The image of the former version is on record with it: the spec names that of
// the new one already.
func (s *upgradeTopic) newUpgrade(from int32) *v1.UpgradeStatus {
	former := ""
	if s.DB.Status.Image != nil {
		former = s.DB.Status.Image.Name
	}
	if former == "" && s.Seen.Set != nil {
		for _, c := range s.Seen.Set.Spec.Template.Spec.Containers {
			if c.Name == naming.ContainerPostgreSQL {
				former = c.Image
			}
		}
	}
	return &v1.UpgradeStatus{
		ID:   fmt.Sprintf("%d-%s", s.DB.Spec.Version, desired.Hash([]any{s.DB.UID, from, s.Now.Unix()})[:6]),
		From: from, To: s.DB.Spec.Version, Step: v1.UpgradeWaiting, Since: s.Stamp(), WayBack: v1.WayBackCancel,
		FormerImage: cmp.Or(former, fmt.Sprintf("%s:%d", s.Settings.PostgreSQL, from)),
		Image:       desired.WantedImage(s.DB, s.Settings),
	}
}

// applyUpgrade does the next step of an upgrade to another major version (docs/upgradesteps.md).
func (s *upgradeTopic) applyUpgrade(ctx context.Context) error {
	u := s.Upgrade
	switch {
	case u == nil || u.Sides != nil: // a second side is the way
		return nil
	case !desired.Upgrades(s.DB) && s.Config.Upgraded != u.ID: // it was given up
		s.Upgrade = nil
		return s.EndUpgrade(ctx)
	case u.Step == v1.UpgradeUpgraded:
		return s.KeepFormer(ctx)
	}
	if s.HoldsWork() && !u.Closed() {
		return s.holdUpgrade(ctx)
	}
	x := s.UpgradeOf()
	s.all.forgetRehearsal()
	work := s.UpgradeWork(ctx, x)
	view, err := s.MajorView(work)
	if err != nil {
		return &world.Problem{Reason: v1.ReasonInvalidSpec, Message: err.Error(), Wait: world.WaitUser}
	}
	d := major.DecideMajor(view)
	s.NoteMajor(d)
	return s.ActOnUpgrade(ctx, d, x, work)
}

// UpgradeOf is what the Pods of the upgrade are made from.
func (s *upgradeTopic) UpgradeOf() upgrades.Upgrade {
	u := s.Upgrade
	ordinal, _ := naming.Ordinal(u.Instance)
	return upgrades.Upgrade{
		ID: u.ID, From: int(u.From), To: int(u.To), Image: u.Image, Ordinal: ordinal, Attempt: int(u.Attempt),
		Node: u.Node,
	}
}

// Work is how far everything is that an upgrade needs.
type Work struct {
	pulls                    []versions.NodePull
	pull, check, backup, job major.Work
	rehearsal                rehearsed
	waits                    bool
	result                   *protocol.UpgradeResult
	pod                      *corev1.Pod
}

// UpgradeWork looks at all that an upgrade needs.
func (s *upgradeTopic) UpgradeWork(ctx context.Context, x upgrades.Upgrade) Work {
	var out Work
	out.pulls = s.nodes.Of(func(version string) bool {
		return upgrade.MajorOf(version) == x.To
	})
	out.pull = s.upgradePull(out.pulls)
	out.check = s.upgradeRoom(x, s.UpgradeCheck(x))
	out.backup = s.UpgradeBackup()
	if out.pull.Done && out.check.Done && out.backup.Done && !s.Upgrade.Closed() {
		out.rehearsal = s.all.rehearseUpgrade(ctx, x)
		s.all.tellRehearsal(s.Upgrade.Rehearsal, out.rehearsal.status)
		s.Upgrade.Rehearsal = out.rehearsal.status
	}
	job := s.Job(x.JobName(s.DB))
	out.job, out.result = s.upgradeJob(job)
	out.pod = jobs.Of(job, s.Seen.UpgradePods).Newest()
	if out.job.Started {
		s.askUpgrade(ctx, &out)
	}
	return out
}

// upgradePull is how far the nodes are with the image. What the nodes have pulled by a tag is pulled once more by the
// digest that the first of them has got, where it has one: all have the same image then.
func (s *upgradeTopic) upgradePull(pulls []versions.NodePull) major.Work {
	state, image, trouble := versions.PulledSoFar(pulls)
	out := major.Work{Started: state != upgrade.PullNone, Failed: trouble}
	if image != s.Upgrade.Image || state != upgrade.PullDone {
		return out
	}
	s.Upgrade.Version = pulls[0].Version
	if fixed := s.nodes.Pulled(pulls[0].Job.Name); fixed != "" && !desired.FixedImage(image) {
		s.Upgrade.Image = fixed
		return out
	}
	out.Failed = versionsDiffer(image, pulls)
	out.Done = out.Failed == ""
	return out
}

// versionsDiffer says that nodes have an image in several versions, "" where all have one.
func versionsDiffer(image string, pulls []versions.NodePull) string {
	var all []string
	differ := false
	for _, p := range pulls {
		all = append(all, fmt.Sprintf("%s on %s", p.Version, p.Node))
		differ = differ || p.Version != pulls[0].Version
	}
	if !differ {
		return ""
	}
	return fmt.Sprintf("the nodes have different versions of the image %s: %s. Name it by its digest in spec.image, "+
		"or have the nodes get the same one", image, strings.Join(all, ", "))
}

// UpgradeCheck is how far the look into the databases is.
func (s *upgradeTopic) UpgradeCheck(x upgrades.Upgrade) major.Work {
	run := jobs.Of(s.Job(x.CheckName(s.DB)), s.Seen.UpgradePods)
	result := jobs.Result[protocol.UpgradeCheck](run.Last(naming.ContainerUpgrade))
	out := major.Work{Started: run.State() != jobs.None}
	switch {
	case run.State() == jobs.None:
		out.Says = s.formerTry()
	case run.State() < jobs.Complete:
	case result == nil: // what it has found is not known, which is not that nothing is in the way
		out.Failed = WhyEnded(run, "")
	case run.State() > jobs.Complete || result.Error != "":
		out.Failed = WhyEnded(run, result.Error)
	case len(result.Refusals) > 0:
		out.Failed = strings.Join(Findings(result.Refusals), "; ")
	default:
		out.Done, s.Upgrade.Warnings = true, Findings(result.Warnings)
	}
	return out
}

// formerTry says that the Pod of a try before has not ended, "" where all have: no other begins before.
func (s *upgradeTopic) formerTry() string {
	for i := range s.Seen.UpgradePods {
		if pod := &s.Seen.UpgradePods[i]; !pods.Ended(pod) {
			return fmt.Sprintf("when the Pod %s of the try before has ended, on node %s", pod.Name, pod.Spec.NodeName)
		}
	}
	return ""
}

// Findings are what a check has found, a sentence each, with the objects that it is about.
func Findings(all []protocol.UpgradeFinding) (out []string) {
	for _, f := range all {
		text := f.Message
		if f.More > 0 {
			f.Objects = append(slices.Clone(f.Objects), fmt.Sprintf("and %d more", f.More))
		}
		if len(f.Objects) > 0 {
			text += ": " + strings.Join(f.Objects, ", ")
		}
		out = append(out, text)
	}
	return out
}

// WhyEnded is why a Job of an upgrade has ended without a result that can be used: as its Pod says, else what keeps
// that from running, else the Job's own words.
func WhyEnded(run jobs.Run, words string) string {
	if pod := run.Newest(); pod != nil && words == "" {
		if t := pods.TroubleOf(pod); t != nil {
			words = t.Message
		}
	}
	return cmp.Or(words, run.EndMessage(), "the Pod has left no result")
}

// UpgradeBackup is how far the backup before the upgrade is. It is done where none is wanted.
func (s *upgradeTopic) UpgradeBackup() major.Work {
	if spec := s.DB.Spec.Upgrade; s.Backup == nil || spec != nil && spec.Backup == v1.UpgradeBackupNone {
		return major.Work{Done: true}
	}
	name := naming.UpgradeBackup(s.DB.Name, s.Upgrade.ID)
	for i := range s.Seen.Backups {
		b := &s.Seen.Backups[i]
		if b.Name != name {
			continue
		}
		c := meta.FindStatusCondition(b.Status.Conditions, v1.ConditionComplete)
		out := major.Work{Started: true}
		switch {
		case c != nil && c.Status == metav1.ConditionTrue:
			out.Done, s.Upgrade.Backup = true, name
		case world.Ended(b) && c != nil:
			out.Failed = fmt.Sprintf("the backup before it has ended without success (%s): delete the DatabaseBackup "+
				"%s, or set spec.upgrade.backup to None to do without", c.Message, name)
		case c != nil:
			out.Says = c.Message
		}
		return out
	}
	return major.Work{}
}

// upgradeJob is how far the Job is that upgrades the data, and what it has left.
func (s *upgradeTopic) upgradeJob(job *batchv1.Job) (major.Work, *protocol.UpgradeResult) {
	run := jobs.Of(job, s.Seen.UpgradePods)
	result := jobs.Result[protocol.UpgradeResult](run.Last(naming.ContainerUpgrade))
	out := major.Work{Started: run.State() == jobs.Running}
	if result == nil {
		result = &protocol.UpgradeResult{}
	}
	pod := run.Newest()
	var trouble *pods.Trouble
	if pod != nil && !pods.Ended(pod) {
		trouble = pods.TroubleOf(pod)
	}
	switch {
	case run.State() == jobs.Complete && result.SystemIdentifier != "":
		out.Done = true
	case run.State() >= jobs.Complete:
		out.Failed = WhyEnded(run, result.Error)
	case trouble != nil && s.Now.Sub(pod.CreationTimestamp.Time) > podPatience:
		out.Failed = trouble.Message
	case trouble != nil:
		out.Says = trouble.Message
	}
	return out, result
}

// MajorView is what a decision about an upgrade is made of.
func (s *upgradeTopic) MajorView(w Work) (major.MajorView, error) {
	u := s.Upgrade
	permission, err := s.Permission(world.RequestUpdate)
	if err != nil {
		return major.MajorView{}, err
	}
	view := major.MajorView{
		Now: s.Now, From: int(u.From), To: int(u.To), Phase: major.Phase(u.Step), Since: u.Since.Time,
		Failure: u.Failure, Tried: s.TriedUpgrade(),
		Ready: s.rest.Unready() == nil, Busy: s.BusyBesides(u), Window: permission.Window,
		Asked: permission.Asked && !permission.InWindow,
		Pull:  w.pull, Check: w.check, Backup: w.backup, Rehearsal: w.rehearsal.Work(),
		Job: w.job, Waits: w.waits,
		Instance: u.Instance, Primary: s.Primary(), Closed: s.AllClosed(), Stopped: len(s.Seen.Pods) == 0,
		TakenOver: s.Config.Upgraded == u.ID, Trouble: s.notStarting(), Back: s.backByHand(),
	}
	answer := s.Seen.Answers[view.Primary]
	view.Serves = view.Primary != "" && upgrade.MajorOf(answer.ServerVersion) == view.To
	return view, nil
}

// WantedUpgrade identifies what of the spec an upgrade is made with.
func (s *upgradeTopic) WantedUpgrade() string {
	return desired.Hash([]any{s.DB.Spec.Version, s.DB.Spec.Image, s.DB.Spec.Upgrade})
}

// TriedUpgrade says that what the spec wants has been tried, and nobody asks for another try.
func (s *upgradeTopic) TriedUpgrade() bool {
	return s.Upgrade.FailedWith == s.WantedUpgrade() && !s.Asks(world.RequestUpdate)
}

// BusyBesides is what else is under way that an upgrade does not begin beside, "" for nothing.
func (s *upgradeTopic) BusyBesides(u *v1.UpgradeStatus) string {
	if s.RestoreWanted() {
		return "a restore is under way"
	}
	for i := range s.Seen.Backups {
		if b := &s.Seen.Backups[i]; !world.Ended(b) && b.Name != naming.UpgradeBackup(s.DB.Name, u.ID) {
			return "the backup " + b.Name + " is being taken"
		}
	}
	return ""
}

// NoteMajor says in the status how far the upgrade is.
func (s *upgradeTopic) NoteMajor(d major.MajorDecision) {
	u := s.Upgrade
	step := string(d.Phase)
	s.UpgradeNext = d.At
	if u.Step != step {
		exact := s.Now.UTC().Format("2006-01-02T15:04:05.000Z07:00")
		switch d.Phase {
		case major.PhaseClosing:
			u.ClosedAt, u.OpenedAt = exact, ""
		case major.PhaseUpgraded:
			u.OpenedAt, u.CompletedAt = exact, s.Stamp()
		case major.PhaseFailed:
			if u.Closed() {
				u.OpenedAt = exact
			}
			u.FailedWith = s.WantedUpgrade()
			u.Attempt++
		}
		u.Step, u.Since = step, s.Stamp()
	}
	u.Message, u.Failure = d.Says, d.Failure
	if d.Phase == major.PhasePreparing && u.Rehearsal.Ended() {
		u.Message += "; " + u.Rehearsal.Message
	}
	switch d.Phase {
	case major.PhasePreparing, major.PhaseClosing, major.PhaseUpgrading:
		u.Message += "; " + s.wayBackAhead()
	default:
	}
	u.WayBack = s.wayBack()
	s.Upgraded = s.upgradeVerdict()
}

// upgradeVerdict is the condition Upgraded.
func (s *upgradeTopic) upgradeVerdict() world.Verdict {
	u := s.Upgrade
	switch u.Step {
	case v1.UpgradeFailed:
		if u.Rehearsal != nil && u.Rehearsal.Result == v1.RehearsalNotDone {
			return world.No(v1.ReasonNotRehearsed, u.Message)
		}
		return world.No(v1.ReasonUpgradeFailed, u.Message)
	case v1.UpgradeUpgraded:
		return world.Yes(v1.ReasonUpgraded, s.UpgradedSentence())
	}
	return world.No(v1.ReasonUpgrading, fmt.Sprintf("from PostgreSQL %d to %d, step %s: %s", u.From, u.To, u.Step,
		u.Message))
}

// wayBack is the way back that there is now.
func (s *upgradeTopic) wayBack() string {
	u := s.Upgrade
	switch {
	case s.Config.Upgraded != u.ID:
		return v1.WayBackCancel
	case !u.Accepted && (u.Method == protocol.MethodClone || u.Method == protocol.MethodCopy):
		return v1.WayBackFormerData
	case u.Backup != "":
		return v1.WayBackArchive
	}
	return v1.WayBackNone
}

// wayBackAhead says which way back there will be when the new version has started.
func (s *upgradeTopic) wayBackAhead() string {
	ahead := upgrades.WayBack(s.DB)
	ahead.To, ahead.Backup = int(s.Upgrade.To), s.Upgrade.Backup != ""
	return ahead.Sentence()
}

// UpgradedSentence says what has become of an upgrade.
func (s *upgradeTopic) UpgradedSentence() string {
	u := s.Upgrade
	text := fmt.Sprintf("PostgreSQL %s, from %d", u.Version, u.From)
	if closed, known := u.ClosedFor(); known {
		text += fmt.Sprintf("; no client was let in for %.1f s", closed.Seconds())
	}
	if r := u.Rehearsal; r != nil && r.WithoutWrites != nil {
		text += fmt.Sprintf(" (in the rehearsal the data alone took %.1f s)", r.WithoutWrites.Seconds())
	}
	if u.Accepted {
		return text + "; the former data is removed"
	}
	until := u.CompletedAt.Add(upgrades.KeepFormer(s.DB)).UTC().Format(time.RFC3339)
	if u.Method == protocol.MethodLink {
		return text + fmt.Sprintf("; the former data shares its files with the new one, so it is of no use any more; "+
			"what is left of it is removed at %s, or with the annotation toban.dev/accept-upgrade", until)
	}
	return text + fmt.Sprintf("; the former data is kept until %s, or until the annotation toban.dev/accept-upgrade",
		until)
}
