package cached

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
)

// pageSize is how many objects are read at once where the API server does not send them one by one (WatchList). Each
// may be of 1.5 MB.
const pageSize = 50

// pages lists objects in pages, of which each is made slim before the next is read: a list whole would be in memory
// whole, whatever is kept of it.
type pages struct {
	toolscache.ListerWatcherWithContext

	slim toolscache.TransformFunc
}

// InPages makes the informers of a cache whose transform it is.
func InPages(slim toolscache.TransformFunc) func(
	toolscache.ListerWatcher, runtime.Object, time.Duration, toolscache.Indexers,
) toolscache.SharedIndexInformer {
	return func(
		of toolscache.ListerWatcher, object runtime.Object, resync time.Duration, indexers toolscache.Indexers,
	) toolscache.SharedIndexInformer {
		in := pages{toolscache.ToListerWatcherWithContext(of), slim}
		return toolscache.NewSharedIndexInformer(in, object, resync, indexers)
	}
}

// List is of toolscache.Lister.
func (p pages) List(options metav1.ListOptions) (runtime.Object, error) {
	return p.ListWithContext(context.Background(), options)
}

// Watch is of toolscache.Watcher.
func (p pages) Watch(options metav1.ListOptions) (watch.Interface, error) {
	return p.WatchWithContext(context.Background(), options) //nolint:wrapcheck // a reflector looks at what it is
}

// ListWithContext is of toolscache.ListerWithContext. The newest version is asked for: of an older one the API server
// may send no pages.
func (p pages) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	options.Limit, options.Continue, options.ResourceVersion, options.ResourceVersionMatch = pageSize, "", "", ""
	var first runtime.Object
	var all []runtime.Object
	for {
		page, err := p.ListerWatcherWithContext.ListWithContext(ctx, options)
		if err != nil {
			return nil, err //nolint:wrapcheck // a reflector looks at what it is
		}
		if all, err = p.add(all, page); err != nil {
			return nil, err
		}
		list, err := meta.ListAccessor(page)
		if err != nil {
			return nil, fmt.Errorf("read a page of a list: %w", err)
		}
		if first == nil {
			first = page
		}
		if options.Continue = list.GetContinue(); options.Continue == "" {
			return join(first, all, list.GetResourceVersion())
		}
	}
}

// add adds the objects of a page to those before.
func (p pages) add(all []runtime.Object, page runtime.Object) ([]runtime.Object, error) {
	err := meta.EachListItemWithAlloc(page, func(object runtime.Object) error {
		slim, err := p.slim(object)
		if is, ok := slim.(runtime.Object); ok && err == nil {
			all = append(all, is)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("take over a page of a list: %w", err)
	}
	return all, nil
}

// join is a list with all objects. All pages are of one version.
func join(list runtime.Object, all []runtime.Object, version string) (runtime.Object, error) {
	if err := meta.SetList(list, all); err != nil {
		return nil, fmt.Errorf("join the pages of a list: %w", err)
	}
	accessor, err := meta.ListAccessor(list)
	if err != nil {
		return nil, fmt.Errorf("join the pages of a list: %w", err)
	}
	accessor.SetContinue("")
	accessor.SetRemainingItemCount(nil)
	accessor.SetResourceVersion(version)
	return list, nil
}
