package plan

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/change/bluegreen"
	"toban.dev/internal/change/major"
	"toban.dev/internal/change/stop"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/desired/sides"
	"toban.dev/internal/operator/desired/upgrades"
)

// change is a SampleDB as it is and as it would be, with what is known of it.
type change struct {
	before, after *v1.SampleDB
	seen          Seen
}

// steps are what follows from the change, without the fields that cause it.
func (c change) steps() []Step {
	var out []Step
	for _, step := range []*Step{
		c.stop(), c.start(), c.reload(), c.grow(), c.restore(), c.upgrade(), c.readers(), c.instances(), c.pooler(),
		c.resize(), c.replace(), c.restart(), c.replaceVolumes(), c.handOver(),
	} {
		if step != nil {
			out = append(out, *step)
		}
	}
	return out
}

// down says that no server runs, or that none is to: then nothing is restarted or reloaded, and what changes counts
// when the servers start.
func (c change) down() bool {
	return c.after.Spec.Stopped || c.before.Spec.Stopped || c.before.Status.Stop.Down()
}

func (c change) stop() *Step {
	if !c.after.Spec.Stopped || c.before.Spec.Stopped {
		return nil
	}
	table := stop.View{}.Steps()
	return &Step{
		Effect: Stop, Instances: c.inTurn(), Writes: table.Writes(),
		Message: inTurn(table.Headings()) + "; the volumes stay",
	}
}

func (c change) start() *Step {
	wakes := c.before.Status.Stop.Sleeps() && c.after.Spec.Sleep() == 0
	if c.after.Spec.Stopped || !c.before.Spec.Stopped && !wakes {
		return nil
	}
	return &Step{Effect: Start, Instances: instances(c.after), Writes: WritesDown, Message: "the instances come back"}
}

// reload is for what the servers take without a restart.
func (c change) reload() *Step {
	if c.down() {
		return nil
	}
	parameters := c.parameters()
	hba := !slices.Equal(c.before.Spec.PostgreSQL.HBA, c.after.Spec.PostgreSQL.HBA)
	names := !slices.Equal(c.before.Spec.TLS.Names, c.after.Spec.TLS.Names)
	if len(parameters.reloaded)+len(parameters.unknown) == 0 && !hba && !names {
		return nil
	}
	var says []string
	if len(parameters.reloaded) > 0 {
		says = append(says, "the servers take new values of "+strings.Join(parameters.reloaded, ", "))
	}
	if len(parameters.unknown) > 0 {
		says = append(says, "not known is whether a restart has to follow for "+strings.Join(parameters.unknown, ", "))
	}
	return &Step{
		Effect: Reload, Instances: c.stay(), Writes: WritesGoOn, Message: strings.Join(says, "; "),
	}
}

func (c change) restart() *Step {
	restarted := c.parameters().restarted
	if c.down() || len(restarted) == 0 || c.replaced() != nil {
		return nil
	}
	return &Step{
		Effect: RestartServers, Instances: c.inTurn(), Writes: c.whileRestarting(),
		Message: fmt.Sprintf("PostgreSQL takes %s only when it starts; %s", strings.Join(restarted, ", "), c.outage()),
	}
}

// changedParameters are the parameters with other values, by how PostgreSQL takes them. Some follow from other fields:
// the memory and the size of the volume.
type changedParameters struct{ reloaded, restarted, unknown []string }

func (c change) parameters() (out changedParameters) {
	was, is := desired.Parameters(c.before), desired.Parameters(c.after)
	all := maps.Clone(was)
	maps.Copy(all, is)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		before, had := was[name]
		after, has := is[name]
		if had == has && before == after {
			continue
		}
		switch context, known := c.seen.Contexts[name]; {
		case context == "postmaster":
			out.restarted = append(out.restarted, name)
		case !known && (c.seen.Contexts == nil || !strings.Contains(name, ".")):
			out.unknown = append(out.unknown, name)
		default:
			out.reloaded = append(out.reloaded, name)
		}
	}
	return out
}

func (c change) grow() *Step {
	var grows []string
	for _, v := range desired.VolumesOf(c.before) {
		was, err := v.Size(c.before)
		is, wrong := v.Size(c.after)
		if err != nil || wrong != nil || is.Cmp(was) <= 0 {
			continue
		}
		which := "each volume"
		if v == desired.WALVolume {
			which = "each WAL volume"
		}
		grows = append(grows, fmt.Sprintf("%s grows from %s to %s", which, was.String(), is.String()))
	}
	if len(grows) == 0 {
		return nil
	}
	return &Step{
		Effect: GrowVolumes, Instances: c.stay(), Writes: WritesGoOn,
		Message: strings.Join(grows, ", ") + ", where its StorageClass has allowVolumeExpansion",
	}
}

func (c change) restore() *Step {
	wanted := c.after.Spec.Restore
	if wanted == nil || c.before.Spec.Restore != nil && c.before.Spec.Restore.ID == wanted.ID {
		return nil
	}
	message := "the data is made beside the present one, which serves; then all instances stop, and start with it"
	if wanted.Survivor {
		message = "all instances stop; the one with the most data goes on, and what only others had is lost. Nothing " +
			"happens where an instance takes writes, or one can be elected"
	}
	return &Step{Effect: Restore, Instances: instances(c.after), Writes: WritesDown, Message: message}
}

func (c change) upgrade() *Step {
	if !desired.Upgrades(c.after) || c.before.Spec.Version == c.after.Spec.Version {
		return nil
	}
	message := fmt.Sprintf("from PostgreSQL %d to %d", desired.Major(c.before), c.after.Spec.Version)
	if desired.BlueGreen(c.after) {
		return c.upgradeBeside(message)
	}
	if r := c.before.Status.Rehearsal; r != nil && r.To == c.after.Spec.Version && r.WithoutWrites != nil {
		message += fmt.Sprintf("; the last rehearsal (%s): %.1f s without writes", r.Result, r.WithoutWrites.Seconds())
	} else {
		message += "; how long it is without writes is not known: it was not rehearsed"
	}
	message += "; " + upgrades.WayBack(c.after).Sentence()
	return &Step{
		Effect: Upgrade, Instances: instances(c.after), Writes: major.MajorView{}.Steps().Writes(), Message: message,
	}
}

// upgradeBeside is an upgrade by a second side, or that there is none.
func (c change) upgradeBeside(message string) *Step {
	if _, sentence := bluegreen.StrategyRefusal(sides.StrategyFacts(c.after)); sentence != "" {
		return &Step{Effect: Upgrade, Writes: WritesGoOn, Message: message + ": it does not begin. " + sentence}
	}
	green := naming.Green(c.after.Name)
	second := names(0, desired.Instances(c.after), func(n int) string { return naming.Instance(green, n) })
	needs := []string{"as much memory"}
	for _, v := range desired.VolumesOf(c.after) {
		if size, err := v.Size(c.after); err == nil {
			needs = append(needs, fmt.Sprintf("a volume of %s each", size.String()))
		}
	}
	there, home := bluegreen.SidesView{}.ToGreen(), bluegreen.SidesView{Accepted: true}.ToBlue()
	message += fmt.Sprintf("; the instances of %s are made and upgraded beside these, and need %s, until the upgrade "+
		"is accepted; %s", green, strings.Join(needs, " and "),
		inTurn(slices.Concat(there.Headings(), home.Headings())))
	return &Step{
		Effect: Upgrade, Instances: slices.Concat(second, instances(c.after)), Writes: there.Writes(), Message: message,
	}
}

func (c change) readers() *Step {
	was, is := desired.MostReaders(c.before), desired.MostReaders(c.after)
	switch {
	case is > was:
		return &Step{
			Effect: AddReaders, Instances: names(was, is, c.reader), Writes: WritesGoOn,
			Message: "each copies all data from the primary; no commit waits for it",
		}
	case is < was:
		return &Step{
			Effect: RemoveReaders, Instances: reversed(names(is, was, c.reader)), Writes: WritesGoOn,
			Message: "their volumes go with them: nothing on them is the only copy",
		}
	}
	return nil
}

func (c change) reader(n int) string { return naming.Reader(c.after.Name, n) }

func (c change) instance(n int) string { return naming.Instance(c.after.Name, n) }

// instances come or go. One that is to go hands over first if it is the primary.
func (c change) instances() *Step {
	was, is := desired.Instances(c.before), desired.Instances(c.after)
	switch {
	case is > was:
		return &Step{
			Effect: AddInstances, Instances: names(was, is, c.instance), Writes: WritesGoOn,
			Message: "each copies all data from the primary, and counts for commits when it has caught up",
		}
	case is < was:
		step := &Step{
			Effect: RemoveInstances, Instances: reversed(names(is, was, c.instance)), Writes: WritesGoOn,
			Message: "they go when they count for commits no more; their volumes stay for their return",
		}
		if c.after.Spec.Storage.WhenScaled == v1.ScaleDelete {
			step.Message = "they go when they count for commits no more, and their volumes with them"
		}
		if slices.Contains(step.Instances, c.before.Status.Primary) {
			step.Writes = WritesHandOver
			step.Message = fmt.Sprintf("the primary %s hands over first; ", c.before.Status.Primary) + step.Message
		}
		return step
	}
	return nil
}

// resize is for Pods that get other resources while they run.
func (c change) resize() *Step {
	var resized []string
	for _, pod := range c.outdated() {
		if _, can := desired.ResizesInPlace(c.after, &pod.Pod, pod.facets); can {
			resized = append(resized, pod.Name)
		}
	}
	if len(resized) == 0 {
		return nil
	}
	return &Step{
		Effect: ResizePods, Instances: c.sorted(resized), Writes: WritesGoOn,
		Message: "while they run; where a node has no room for that, the Pod is replaced",
	}
}

func (c change) replace() *Step {
	replaced := c.replaced()
	if len(replaced) == 0 {
		return nil
	}
	return &Step{
		Effect: ReplacePods, Instances: c.sorted(replaced), Writes: c.whileRestarting(), Message: c.outage(),
	}
}

// replaced are the Pods that are made anew.
func (c change) replaced() (out []string) {
	for _, pod := range c.outdated() {
		if _, can := desired.ResizesInPlace(c.after, &pod.Pod, pod.facets); !can {
			out = append(out, pod.Name)
		}
	}
	return out
}

// outdatedPod is a Pod with what of it the change makes outdated.
type outdatedPod struct {
	corev1.Pod

	facets []string
}

// outdated are the Pods that are as they should be before the change, and not after it. Those that go are not among
// them.
func (c change) outdated() (out []outdatedPod) {
	if c.down() {
		return nil
	}
	stay := append(c.stay(), names(0, desired.MostReaders(c.after), c.reader)...)
	for _, pod := range c.seen.Pods {
		// The settings of the operator are the same before and after.
		before := desired.Outdated(c.before, desired.Settings{}, &pod)
		facets := slices.DeleteFunc(desired.Outdated(c.after, desired.Settings{}, &pod),
			func(facet string) bool { return slices.Contains(before, facet) })
		if len(facets) > 0 && slices.Contains(stay, pod.Name) {
			out = append(out, outdatedPod{pod, facets})
		}
	}
	return out
}

// handOver is for another preference of primaries. Which instance is in which zone is not looked at.
func (c change) handOver() *Step {
	now := c.after.Spec.Primary
	if c.down() || desired.Instances(c.after) == 1 || now == nil || len(now.Zones)+len(now.Avoid) == 0 ||
		now.HandOver == v1.HandOverOnRequest || reflect.DeepEqual(c.before.Spec.Primary, now) {
		return nil
	}
	when := "when all has been well for half a minute"
	if now.HandOver == v1.HandOverInWindow {
		when = "while update.window is open"
	}
	return &Step{
		Effect: HandOver, Instances: primaryOf(c.before), Writes: WritesHandOver,
		Message: "if another instance is preferred to the primary now, that hands over " + when,
	}
}

// whileRestarting is what becomes of writes while all servers restart, one after the other.
func (c change) whileRestarting() Writes {
	if desired.Instances(c.after) == 1 {
		return WritesDown
	}
	return WritesHandOver
}

// outage says it for people.
func (c change) outage() string {
	n, waits := len(c.stay()), c.after.Spec.Durability != v1.DurabilityAsync
	switch {
	case n == 1:
		return "there is only one instance: nobody can read or write until it is back"
	case n == 2 && waits:
		return "the standby first, when writes wait for about a second; then the primary hands over"
	}
	return "one at a time, the standbys first; then the primary hands over"
}

// stay are the instances that are there before and after, by ordinal. One that is new starts with all that is wanted.
func (c change) stay() []string {
	return names(0, min(desired.Instances(c.before), desired.Instances(c.after)), c.instance)
}

// inTurn are those in the order in which they restart.
func (c change) inTurn() []string { return c.sorted(c.stay()) }

// sorted puts servers into the order in which they restart: readers first, which nobody waits for.
func (c change) sorted(servers []string) []string {
	all, primary := slices.Clone(servers), c.before.Status.Primary
	slices.SortFunc(all, func(a, b string) int {
		return cmp.Or(c.group(a)-c.group(b), desired.RestartOrder(a, b, primary))
	})
	return all
}

// group is 0 for readers, 1 for instances.
func (c change) group(server string) int {
	if slices.Contains(instances(c.after), server) {
		return 1
	}
	return 0
}

func instances(db *v1.SampleDB) []string {
	return names(0, desired.Instances(db), func(n int) string { return naming.Instance(db.Name, n) })
}

func primaryOf(db *v1.SampleDB) []string {
	if db.Status.Primary == "" {
		return nil
	}
	return []string{db.Status.Primary}
}

// names are those of the ordinals from one up to below another.
func names(from, to int, name func(int) string) (out []string) {
	for n := from; n < to; n++ {
		out = append(out, name(n))
	}
	return out
}

// inTurn is a sentence of what happens one after the other.
func inTurn(headings []string) string {
	last := len(headings) - 1
	return strings.Join(headings[:last], ", ") + ", and " + headings[last]
}

func reversed(names []string) []string {
	slices.Reverse(names)
	return names
}
