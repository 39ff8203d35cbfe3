package plan

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/change/space"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/desired/volumes"
)

// replaceVolumes is for what of spec.storage volumes can have only by being made anew.
func (c change) replaceVolumes() *Step {
	size, due, anew := c.anew()
	if len(due) == 0 {
		return nil
	}
	step := &Step{Effect: ReplaceVolumes, Instances: c.sorted(due), Writes: WritesHandOver}
	switch aside := c.aside(due); {
	case aside != "":
		step.Writes = WritesGoOn
		step.Message = aside
		return step
	case desired.Instances(c.after) == 1:
		step.Writes = WritesGoOn
		step.Message = "nothing happens: a lone instance has nobody to copy from. Set instances to 2, wait until the " +
			"SampleDB is ready, and set it back to 1"
		return step
	case c.down():
		step.Writes = WritesDown
	case c.before.Status.Primary != "" && !slices.Contains(due, c.before.Status.Primary):
		step.Writes = WritesGoOn
	}
	what := fmt.Sprintf("each copies its data anew onto a volume of %s", size.String())
	if slices.Contains(anew, volumes.AnewClass) {
		what += ", of the class " + *c.after.Spec.Storage.StorageClassName
	}
	step.Message = what + ", one at a time, the standbys first; then the primary hands over. " + c.fits(size)
	return step
}

// aside is why nothing happens where one of the volumes has former data, which is nowhere else; "" for none.
func (c change) aside(due []string) string {
	db, restored := c.after.DeepCopy(), ""
	db.Status = c.before.Status
	if r := db.Status.Restore; r != nil && r.CompletedAt != nil {
		restored = r.ID
	}
	for _, name := range due {
		ordinal, _ := naming.Ordinal(name)
		if has := volumes.DataAside(db, name, restored, c.claim(ordinal)); has.What != "" {
			return fmt.Sprintf("nothing happens: the volume of %s has %s, and nobody else has it. %s", name, has.What,
				has.Until)
		}
	}
	return ""
}

// anew are the instances that are to have volumes made anew, the size of these, and why.
func (c change) anew() (size resource.Quantity, due, why []string) {
	after := volumes.Asked(c.after)
	size, err := resource.ParseQuantity(after.Size)
	if err != nil {
		return size, nil, nil
	}
	for ordinal, name := range c.stay() {
		if anew := after.Anew(size, c.claim(ordinal)); len(anew) > 0 {
			due, why = append(due, name), append(why, anew...)
		}
	}
	if in, err := desired.Size(c.after); err == nil && !slices.Contains(why, volumes.AnewSize) {
		size = in // only the class is another one
	}
	return size, due, why
}

// claim is that of an instance: as it is, or, where it was not read, as the SampleDB before has it made.
func (c change) claim(ordinal int) *corev1.PersistentVolumeClaim {
	name := naming.Claim(c.before.Name, ordinal)
	for i := range c.seen.Claims {
		if claim := &c.seen.Claims[i]; claim.Name == name && volumes.Asked(c.before).HasNoted(claim) {
			return claim
		}
	}
	made, err := desired.Claim(c.before, ordinal, nil)
	if err != nil {
		return &corev1.PersistentVolumeClaim{}
	}
	volumes.NoteStorage(made, volumes.Asked(c.before).Note())
	return made
}

// fits says whether the data fits, by what the status says of the volumes: as the operator decides it.
func (c change) fits(size resource.Quantity) string {
	var volumes []space.Volume
	for _, name := range c.stay() {
		volumes = append(volumes, volumeOf(c.before, name))
	}
	switch fit := space.FitsOn(volumes, size.Value()); fit.Answer {
	case space.Fits:
		return strings.ToUpper(fit.Message[:1]) + fit.Message[1:] + " (proved again before each step)"
	case space.DoesNotFit:
		return "As it is now, nothing is touched: " + fit.Message
	default:
		return "Nothing is touched before it is known that the data fits: " + fit.Message
	}
}

// volumeOf is what the status says of the volume of an instance.
func volumeOf(db *v1.SampleDB, instance string) space.Volume {
	out := space.Volume{Name: naming.ClaimOf(instance)}
	for _, i := range db.Status.InstanceStatuses {
		if i.Name != instance || i.Volume == nil {
			continue
		}
		size, err := resource.ParseQuantity(i.Volume.Size)
		if err != nil {
			continue
		}
		out.Known, out.Size = true, size.Value()
		out.Used = size.Value() / 100 * int64(i.Volume.UsedPercent)
		if rate, err := resource.ParseQuantity(i.Volume.FillsPerDay); err == nil {
			out.PerDay, out.RateKnown = rate.Value(), true
		}
	}
	return out
}
