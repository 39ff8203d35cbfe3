package versions

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/change/upgrade"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/jobs"
	"toban.dev/internal/operator/pods"
	"toban.dev/internal/operator/sampledb/world"
	"toban.dev/internal/work/maintenance"
)

// maintenanceTopic does what is left to do in the databases after a change of the image.
type maintenanceTopic struct {
	base
	// Finish is what is left to do in the databases after a change of the image, nil where there was none; finishSays
	// is what becomes of it, FinishNext when that changes by itself, zero for never. SortedBy is the image under which
	// texts were last seen sorted as on record.
	Finish     *v1.FinishStatus
	finishSays string
	FinishNext time.Time
	SortedBy   string
}

const (
	// finishSettles is how long after the Job what the primary said before it may still be there.
	finishSettles = time.Minute
	// restoredLately is how long after its first start what is wrong in a restored SampleDB is from the restore.
	restoredLately = 24 * time.Hour
)

// DueFinish notes that an act has left something to do in the databases: ApplyFinish does it as soon as the SampleDB is
// Ready. The sentence says what has made it due, for instance "17 to 18".
func (s *maintenanceTopic) DueFinish(sentence string, parts ...v1.FinishPart) {
	if s.Finish != nil && s.Finish.Step != v1.FinishDone {
		sentence = cmp.Or(s.Finish.For, sentence)
		parts = append(slices.Clone(s.Finish.Parts), parts...)
	}
	var once []v1.FinishPart
	for _, part := range []v1.FinishPart{v1.FinishStatistics, v1.FinishIndexes, v1.FinishExtensions} {
		if slices.Contains(parts, part) {
			once = append(once, part)
		}
	}
	if s.Finish != nil && s.Finish.Step == v1.FinishRunning {
		s.Finish.Parts = once // those that the Job does not do are left when it has ended
		return
	}
	s.Finish = &v1.FinishStatus{For: sentence, Parts: once}
	s.setFinishStep(v1.FinishWaiting, "")
}

// setFinishStep changes the step.
func (s *maintenanceTopic) setFinishStep(step, message string) {
	if s.Finish.Step != step || s.Finish.Since == nil {
		s.Finish.Since = s.Stamp()
	}
	s.Finish.Step, s.Finish.Message = step, message
}

// finishDue says that something is left to do that an act has made due.
func (s *maintenanceTopic) finishDue() bool { return s.Finish != nil && s.Finish.Step != v1.FinishDone }

// Finishing says that the Job works.
func (s *maintenanceTopic) Finishing() bool {
	return s.Finish != nil && s.Finish.Step == v1.FinishRunning
}

// ApplyFinish does the next step of what is left in the databases after a change of the image (docs/upgradesteps.md).
func (s *maintenanceTopic) ApplyFinish(ctx context.Context) error {
	if s.Starting() {
		return nil
	}
	s.noteLibraries()
	s.noteSorting()
	permission, err := s.Permission(world.RequestReindex)
	if err != nil {
		return nil //nolint:nilerr // the phase of the update says so
	}
	job := s.Job(naming.FinishJob(s.DB.Name))
	if job != nil && job.DeletionTimestamp != nil {
		return nil // what it has left is taken over already; its end is watched
	}
	run := jobs.Of(job, s.Seen.FinishPods)
	step, says, next := upgrade.DecideFinish(s.finishSituation(permission, run))
	s.finishSays, s.FinishNext = says, next
	if s.finishedLately() {
		s.FinishNext = s.Now.Add(finishSettles / 4)
	}
	switch step {
	case upgrade.FinishBegin:
		return s.beginFinish(ctx, permission.Asked)
	case upgrade.FinishWatch:
		s.watchFinish(job.Annotations[naming.AnnotationFinish], run)
	case upgrade.FinishTake:
		return s.endFinish(ctx, run)
	case upgrade.FinishWait:
		if s.finishDue() && s.Finish.Step != v1.FinishFailed {
			s.setFinishStep(v1.FinishWaiting, says)
		}
	case upgrade.FinishNone:
	}
	return nil
}

// finishedLately says that the Job ended a moment ago, so that the primary's agent looks at the indexes again soon, and
// tells nobody.
func (s *maintenanceTopic) finishedLately() bool {
	f := s.Finish
	return f != nil && f.Step == v1.FinishDone && f.Since != nil && s.Now.Sub(f.Since.Time) < 2*finishSettles
}

// finishSituation is what the decision is made of.
func (s *maintenanceTopic) finishSituation(permission upgrade.Permission, run jobs.Run) upgrade.Finish {
	f := upgrade.Finish{
		Now: s.Now, Permission: permission, Due: s.finishDue(),
		OnRequest: desired.FinishOnRequest(s.DB),
		Ready:     s.others.Readiness().Status == metav1.ConditionTrue,
		Works:     run.State() == jobs.Running,
		Ended:     run.Ended(),
	}
	if found := s.Collations(); found != nil && found.Problem == "" {
		f.Stale, f.Cramped = found.Changed(), found.Cramped && !s.finishOthers()
	}
	if l := s.Finish; l != nil {
		f.Left = l.Step == v1.FinishDone && len(l.Duplicates)+len(l.Failures) > 0
		if l.Step == v1.FinishFailed {
			f.FailedAt = l.Since.Time
		}
		if l.Step == v1.FinishDone && s.Now.Sub(l.Since.Time) < finishSettles {
			f.Stale = false
		}
	}
	return f
}

// finishOthers says that something else is due than a rebuild.
func (s *maintenanceTopic) finishOthers() bool {
	other := func(p v1.FinishPart) bool { return p != v1.FinishIndexes }
	return s.finishDue() && slices.ContainsFunc(s.Finish.Parts, other)
}

// beginFinish makes the Job. Where there may be no room for indexes, it does what needs none.
func (s *maintenanceTopic) beginFinish(ctx context.Context, asked bool) error {
	if s.Finish == nil || s.Finish.Step == v1.FinishDone {
		sentence := "another order of texts"
		if asked {
			sentence = "a request"
		}
		s.DueFinish(sentence, v1.FinishIndexes)
	} else if asked {
		s.DueFinish("a request", v1.FinishIndexes)
	}
	parts := slices.Clone(s.Finish.Parts)
	if found := s.Collations(); found != nil && found.Cramped && !asked && s.finishOthers() {
		parts = slices.DeleteFunc(parts, func(p v1.FinishPart) bool { return p == v1.FinishIndexes })
	}
	if err := s.Jobs().Create(ctx, desired.FinishJob(s.DB, s.Settings, parts)); err != nil {
		return err
	}
	s.setFinishStep(v1.FinishRunning, "the Job "+naming.FinishJob(s.DB.Name)+" is at work")
	return nil
}

// watchFinish says how far the Job is, as the primary's agent sees it.
func (s *maintenanceTopic) watchFinish(parts string, run jobs.Run) {
	if s.Finish == nil || s.Finish.Step == v1.FinishDone {
		s.Finish = &v1.FinishStatus{For: "a request"} // the status was lost
		for _, part := range strings.Split(parts, ",") {
			s.Finish.Parts = append(s.Finish.Parts, v1.FinishPart(part))
		}
	}
	s.setFinishStep(v1.FinishRunning, "the Job "+naming.FinishJob(s.DB.Name)+" is at work")
	if found := s.Collations(); found != nil && found.Progress != nil {
		s.Finish.Done, s.Finish.Total = int32(found.Progress.Done), int32(found.Progress.Total) //nolint:gosec // small
		s.Finish.Current = found.Progress.Current
	}
	if text := run.Last(naming.ContainerFinish); text != "" && run.Newest() != nil {
		if result := jobs.Result[maintenance.Result](text); result != nil && result.Error != "" {
			s.Finish.Message = "the Job is tried again: " + result.Error
		}
	}
	if t := pods.TroubleOf(run.Newest()); t != nil {
		s.Finish.Message = "the Job can't begin: " + t.Message
	}
}

// endFinish takes over what the Job has left, once, and removes it, and the request that it has fulfilled.
func (s *maintenanceTopic) endFinish(ctx context.Context, run jobs.Run) error {
	if s.Finish == nil || s.Finishing() {
		did := strings.Split(run.Job.Annotations[naming.AnnotationFinish], ",")
		if slices.Contains(did, string(v1.FinishIndexes)) { // first: a record of the end beside it would begin it anew
			if err := s.Settle(ctx, world.RequestReindex); err != nil {
				return err
			}
		}
		s.takeFinish(run)
	}
	return s.Jobs().Remove(ctx, run.Job)
}

// takeFinish takes over what the Job has left.
func (s *maintenanceTopic) takeFinish(run jobs.Run) {
	result := jobs.Result[maintenance.Result](run.Last(naming.ContainerFinish))
	if s.Finish == nil {
		s.Finish = &v1.FinishStatus{For: "a request"}
	}
	s.Finish.Current, s.Finish.Done, s.Finish.Total = "", 0, 0
	if result == nil || !result.Done {
		message := run.EndMessage()
		if result != nil {
			message = result.Error
		}
		s.setFinishStep(v1.FinishFailed, cmp.Or(message, "the Pod has left no result"))
		s.AddWarning(world.EventFinishFailed, s.Finish.Message)
		return
	}
	did := strings.Split(run.Job.Annotations[naming.AnnotationFinish], ",")
	left := slices.DeleteFunc(slices.Clone(s.Finish.Parts), func(p v1.FinishPart) bool {
		return slices.Contains(did, string(p))
	})
	done := &v1.FinishStatus{
		For: s.Finish.For, Rebuilt: int32(result.Rebuilt), Checked: int32(result.Checked), //nolint:gosec // indexes
		OutOfOrder: int32(result.Broken), //nolint:gosec // as above
		Duplicates: result.Duplicates, Failures: result.Failures,
	}
	for _, table := range result.Partitioned {
		done.Left = append(done.Left, "rows of "+table+" may be in a wrong partition")
	}
	for _, extension := range result.Older {
		done.Left = append(done.Left, "extension "+extension)
	}
	s.Finish = done
	s.setFinishStep(v1.FinishDone, finishWords(*result))
	s.AddEvent(world.EventFinished, s.Finish.Message)
	s.FinishNext = s.Now.Add(finishSettles)
	if len(left) > 0 {
		s.DueFinish(done.For, left...)
	}
}

// finishWords say what was done.
func finishWords(r maintenance.Result) string {
	words := []string{fmt.Sprintf("%d indexes are rebuilt", r.Rebuilt)}
	if r.Checked > 0 {
		words[0] += fmt.Sprintf("; of %d that were checked before, %d were out of order", r.Checked, r.Broken)
	}
	if r.Analyzed > 0 {
		words = append(words, fmt.Sprintf("%d tables have statistics", r.Analyzed))
	}
	if len(r.Updated) > 0 {
		words = append(words, "updated: "+strings.Join(r.Updated, ", "))
	}
	if len(r.Duplicates)+len(r.Failures)+len(r.Older)+len(r.Partitioned) > 0 {
		words = append(words, "status.finish names what is left")
	}
	return strings.Join(words, ". ")
}

// Collations is what the primary has found, nil where it has not said.
func (s *maintenanceTopic) Collations() *maintenance.Report {
	return s.Seen.Answers[s.Primary()].Collations
}

// noteSorting notes under which image texts are sorted as on record. Where they are not any more, the change of the
// image, or the restore, has made the rebuild due.
func (s *maintenanceTopic) noteSorting() {
	found := s.Collations()
	if found == nil || found.Problem != "" {
		return
	}
	runs := s.Seen.Answers[s.Primary()].ServerVersion
	if ordinal, known := naming.Ordinal(s.Primary()); known && s.Seen.Pods[ordinal] != nil {
		runs = cmp.Or(desired.ImageID(s.Seen.Pods[ordinal], naming.ContainerPostgreSQL), runs)
	}
	if !found.Changed() {
		s.SortedBy = runs
		return
	}
	restored := (s.DB.Spec.RestoreFrom != nil || s.DB.Status.Restore != nil) && s.InitializedAt != nil &&
		s.Now.Sub(s.InitializedAt.Time) < restoredLately && s.Finish == nil
	switch {
	case s.SortedBy != "":
		s.DueFinish(fmt.Sprintf("from %s to %s", s.SortedBy, runs), v1.FinishIndexes)
	case restored:
		s.DueFinish("a restore", v1.FinishIndexes)
	}
	s.SortedBy = ""
}

// noteLibraries notes which libraries the image has that runs, when that is the one that was looked into.
func (s *maintenanceTopic) noteLibraries() {
	i := s.Image
	if i != nil && i.Runs != "" && desired.Digest(i.Runs) == desired.Digest(i.Reference) {
		i.RunsCLibrary, i.RunsICU = i.CLibrary, i.ICU
	}
}

// sortingAhead is a sentence about what an update to the image that was looked into does to indexes, "" where it has
// the same libraries, or that is not known.
func (s *maintenanceTopic) sortingAhead() string {
	others, indexes := s.otherLibraries(), s.sorted()
	switch {
	case others == "":
		return ""
	case indexes == "":
		return fmt.Sprintf(". It has %s; no index depends on them", others)
	}
	return fmt.Sprintf(". It has %s: %s may be out of order after it, until they are rebuilt", others, indexes)
}

// sortingChange is what a person should know who decides on that update: that the image has other libraries than run,
// or that this is not known, and which indexes are by them, or why that is not known yet.
func (s *maintenanceTopic) sortingChange() (libraries, indexes, unsaid string) {
	i := s.Image
	switch others := s.otherLibraries(); {
	case others != "":
		libraries = "it has " + others
	case i.RunsCLibrary == "" || i.CLibrary == "" || (i.RunsICU == "") != (i.ICU == ""):
		libraries = "it is not known whether it has the C library and the ICU that run"
	}
	if s.Collations() == nil {
		return libraries, "", "the primary has not said which indexes depend on them (its agent may be of an earlier " +
			"release)"
	}
	return libraries, s.sorted(), ""
}

// otherLibraries are those of the image that was looked into, and instead of what they are, where it has others than
// run.
func (s *maintenanceTopic) otherLibraries() string {
	i := s.Image
	var others []string
	if i.RunsCLibrary != "" && i.CLibrary != "" && i.RunsCLibrary != i.CLibrary {
		others = append(others, i.CLibrary+" instead of "+i.RunsCLibrary)
	}
	if i.RunsICU != "" && i.ICU != "" && i.RunsICU != i.ICU {
		others = append(others, "ICU "+i.ICU+" instead of "+i.RunsICU)
	}
	return strings.Join(others, " and ")
}

// sorted are the indexes that another library may put out of order, "" for none.
func (s *maintenanceTopic) sorted() string {
	switch found := s.Collations(); {
	case found == nil || found.Problem != "":
		return "indexes on texts"
	case found.Dependent > 0:
		return fmt.Sprintf("up to %d indexes", found.Dependent)
	}
	return ""
}

// CollationsCurrent is the condition CollationsCurrent, empty before there is a primary for the first time. What a new
// primary has not said yet is as it was.
func (s *maintenanceTopic) CollationsCurrent() world.Verdict {
	found := s.Collations()
	last := world.Condition(s.DB.Status, v1.ConditionCollationsCurrent)
	notRead := func(message string) world.Verdict {
		return world.Verdict{Status: metav1.ConditionUnknown, Reason: v1.ReasonCollationsNotRead, Message: message}
	}
	switch {
	case s.Starting():
		return world.Verdict{}
	case found == nil && last != nil:
		return world.Verdict{Status: last.Status, Reason: last.Reason, Message: last.Message}
	case found == nil:
		return notRead("the primary has not looked yet, or its agent is of an earlier release")
	case found.Problem != "":
		return notRead("the primary could not look: " + found.Problem)
	case found.Changed():
		return s.collationsChanged(found)
	case len(found.Unrecorded) > 0:
		return world.Verdict{Status: metav1.ConditionUnknown, Reason: v1.ReasonVersionNotRecorded, Message: fmt.Sprintf(
			"it is not known in which order %d indexes are: %s. Rebuild them with the annotation toban.dev/reindex=now",
			found.Indexes, versionWords(found.Unrecorded, 0))}
	}
	return world.Yes(v1.ReasonCollationsCurrent, "texts are sorted as they were when the indexes were made")
}

// collationsChanged is the condition where indexes may be out of order.
func (s *maintenanceTopic) collationsChanged(found *maintenance.Report) world.Verdict {
	l := s.Finish
	words := fmt.Sprintf("%d indexes may be out of order: %s", found.Indexes,
		versionWords(append(slices.Clone(found.Databases), found.Collations...), found.More))
	switch {
	case s.Finishing():
		return world.No(v1.ReasonRebuilding, words+". They are being rebuilt")
	case l != nil && len(l.Duplicates) > 0:
		return world.No(v1.ReasonDuplicateKeys, "rows have the same key: "+strings.Join(l.Duplicates, "; ")+". "+
			s.finishSays)
	case l != nil && len(l.Failures) > 0:
		return world.No(v1.ReasonRebuildFailed, strings.Join(l.Failures, "; ")+". "+s.finishSays)
	case l != nil && l.Step == v1.FinishFailed:
		return world.No(v1.ReasonRebuildFailed, l.Message+". "+s.finishSays)
	}
	return world.No(v1.ReasonCollationsChanged, strings.TrimSuffix(words+". "+s.finishSays, ". "))
}

func versionWords(versions []maintenance.Version, more int) string {
	var words []string
	for _, v := range versions {
		words = append(words, v.String())
	}
	if more > 0 {
		words = append(words, fmt.Sprintf("and %d more", more))
	}
	return cmp.Or(strings.Join(words, ", "), "the server has gone back to a former library")
}

// CollationChanges are the events about the order of texts.
func CollationChanges(old, now v1.SampleDBStatus) []world.Event {
	c := world.Turned(old, now, v1.ConditionCollationsCurrent)
	was := world.Condition(old, v1.ConditionCollationsCurrent)
	switch {
	case c == nil || c.Reason == v1.ReasonRebuilding:
	case c.Status == metav1.ConditionFalse:
		return []world.Event{world.Warning(world.EventCollations, c.Reason+": "+c.Message)}
	case c.Status == metav1.ConditionTrue && was != nil && was.Status == metav1.ConditionFalse:
		return []world.Event{world.Normal(world.EventCollations, c.Message)}
	}
	return nil
}
