package cached

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// shelf has ConfigMaps, and gives them out in pages of as many as it is asked for.
type shelf struct {
	objects int
	// out is how many it has given out that were not made slim yet, most the most of them at a time.
	out, most int
	asked     []metav1.ListOptions
}

func (s *shelf) ListWithContext(_ context.Context, o metav1.ListOptions) (runtime.Object, error) {
	s.asked = append(s.asked, o)
	from := 0
	if o.Continue != "" {
		if _, err := fmt.Sscan(o.Continue, &from); err != nil {
			return nil, err
		}
	}
	list := &corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}}
	for n := from; n < s.objects && int64(n-from) < o.Limit; n++ {
		list.Items = append(list.Items, corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(n)}, Data: map[string]string{"a": "b"},
		})
		s.out++
	}
	s.most = max(s.most, s.out)
	if next := from + len(list.Items); next < s.objects {
		left := int64(s.objects - next)
		list.Continue, list.RemainingItemCount = fmt.Sprint(next), &left
	}
	return list, nil
}

func (s *shelf) WatchWithContext(context.Context, metav1.ListOptions) (watch.Interface, error) {
	return watch.NewFake(), nil
}

// A list is whole, and no more than a page of it is in memory as the API server has it.
func TestAListIsReadInPages(t *testing.T) {
	for _, objects := range []int{0, 1, pageSize, 3*pageSize + 1} {
		s := &shelf{objects: objects}
		p := pages{s, func(object any) (any, error) {
			s.out--
			object.(*corev1.ConfigMap).Data = nil //nolint:errcheck // it is one
			return object, nil
		}}
		all, err := p.List(metav1.ListOptions{ResourceVersion: "0", LabelSelector: "a=b"})
		list, ok := all.(*corev1.ConfigMapList)
		if err != nil || !ok || len(list.Items) != objects || s.most > pageSize || list.Continue != "" ||
			list.RemainingItemCount != nil || list.ResourceVersion != "7" {
			t.Fatalf("%d objects: %v, %+v, and %d at a time", objects, err, all, s.most)
		}
		for n, object := range list.Items {
			if object.Name != fmt.Sprint(n) || object.Data != nil {
				t.Errorf("at %d it has %+v", n, object)
			}
		}
		for _, o := range s.asked {
			if o.ResourceVersion != "" || o.LabelSelector != "a=b" {
				t.Errorf("it asks for %+v", o)
			}
		}
	}
}
