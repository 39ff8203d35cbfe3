package sampledb

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/controller/apply"
	"toban.dev/internal/naming"
)

// Waits after problems. Most end earlier, by a change that is watched.
const (
	waitUser = 30 * time.Second
	waitGone = time.Second
)

// apply is the one way to write an object of a SampleDB.
func (r *Reconciler) apply(ctx context.Context, db *v1.SampleDB, want client.Object) error {
	return asProblem(r.writer().Apply(ctx, owner(db), want))
}

// create makes an object that nobody changes afterwards.
func (r *Reconciler) create(ctx context.Context, db *v1.SampleDB, want client.Object) error {
	return asProblem(r.writer().Create(ctx, owner(db), want))
}

func (r *Reconciler) writer() apply.Writer { return apply.Writer{Client: r.Client, Reader: r.Reader} }

// owner is the SampleDB as the owner of its objects. A volume claim may outlive it,
// and then belongs to the next one of the name.
func owner(db *v1.SampleDB) apply.Owner {
	return apply.Owner{Object: db, Kind: "SampleDB", Adopts: func(object metav1.Object) bool {
		labels := object.GetLabels()
		return isClaim(object) && metav1.GetControllerOf(object) == nil &&
			labels[naming.LabelManagedBy] == naming.ManagedBy && labels[naming.LabelSampleDB] == db.Name
	}}
}

func isClaim(object metav1.Object) bool {
	switch o := object.(type) {
	case *corev1.PersistentVolumeClaim:
		return true
	case *metav1.PartialObjectMetadata:
		return o.Kind == "PersistentVolumeClaim"
	}
	return false
}

// ours says that an object belongs to the SampleDB.
func ours(object metav1.Object, db *v1.SampleDB) bool { return owner(db).Has(object) }

// mayWrite is nil when the object is the SampleDB's and lives.
func mayWrite(have metav1.Object, db *v1.SampleDB, kind string) error {
	return asProblem(apply.MayWrite(have, owner(db), kind))
}

// refused tells a new object that the API server will never take from one that it could not take now.
func refused(err error, kind, name string) error {
	return asProblem(apply.RefusedBy(err, "create", kind, name))
}

// asProblem makes an object that could not be written the reason of the condition Ready.
func asProblem(err error) error {
	var p *apply.Problem
	if !errors.As(err, &p) {
		return err
	}
	switch p.Cause {
	case apply.Taken:
		return &problem{v1.ReasonNameTaken, p.Message, waitUser}
	case apply.Refused:
		return &problem{v1.ReasonInvalidSpec, p.Message, waitUser}
	case apply.Waiting:
	}
	return &problem{v1.ReasonCreating, p.Message, waitGone}
}
