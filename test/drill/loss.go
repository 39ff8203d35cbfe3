package main

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"toban.dev/internal/naming"
)

// What belongs to the SampleDB, and can be deleted under it.
func theLease() client.Object {
	return &coordinationv1.Lease{ObjectMeta: named(naming.Lease(name))}
}

func theConfig() client.Object {
	return &corev1.ConfigMap{ObjectMeta: named(naming.ConfigMap(name))}
}

func theService() client.Object {
	return &corev1.Service{ObjectMeta: named(naming.ReadWriteService(name))}
}

func theStatefulSet() client.Object {
	return &appsv1.StatefulSet{ObjectMeta: named(naming.StatefulSet(name))}
}

func theAuthority() client.Object {
	return &corev1.Secret{ObjectMeta: named(naming.AuthoritySecret(name))}
}

func named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

// deleteObject deletes an object and leaves alone what belongs to it. All is not whole
// before there is another one in its place.
func deleteObject(object func() client.Object) injection {
	return func(ctx context.Context, s *scene) error {
		gone, err := s.identity(ctx, object())
		if err != nil {
			return err
		}
		s.absent = append(s.absent, func(ctx context.Context) error { return s.replaced(ctx, object(), gone) })
		s.strike()
		return s.Delete(ctx, object(), client.PropagationPolicy(metav1.DeletePropagationOrphan))
	}
}

// deleteAuthority deletes the Secret NAME-ca. Nobody notices at once (docs/trust.md), so
// it is not waited for.
func deleteAuthority(ctx context.Context, s *scene) error {
	s.strike()
	return s.Delete(ctx, theAuthority())
}

// identity is an object's UID.
func (s *scene) identity(ctx context.Context, object client.Object) (types.UID, error) {
	if err := s.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		return "", fmt.Errorf("look for what is to be deleted: %w", err)
	}
	return object.GetUID(), nil
}

// replaced complains while there is no other object in the place of the one that is gone.
func (s *scene) replaced(ctx context.Context, object client.Object, gone types.UID) error {
	err := s.Get(ctx, client.ObjectKeyFromObject(object), object)
	if err == nil && object.GetUID() == gone {
		err = errors.New("it is still being deleted")
	}
	if err != nil {
		return fmt.Errorf("%T %s is not there again: %w", object, object.GetName(), err)
	}
	return nil
}

// loseVolume deletes a standby's claim, and with it its volume, and its Pod.
func loseVolume(ctx context.Context, s *scene) error {
	ordinal, _ := naming.Ordinal(standbyOf(s).name)
	claim := func() client.Object {
		return &corev1.PersistentVolumeClaim{ObjectMeta: named(naming.Claim(name, ordinal))}
	}
	gone, err := s.identity(ctx, claim())
	if err != nil {
		return err
	}
	s.absent = append(s.absent, func(ctx context.Context) error { return s.replaced(ctx, claim(), gone) })
	s.strike()
	if err := s.Delete(ctx, claim()); err != nil { // it ends with the Pod that uses it
		return err
	}
	err = s.Delete(ctx, &corev1.Pod{ObjectMeta: named(standbyOf(s).name)})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
