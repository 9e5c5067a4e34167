package follow

import (
	"context"
	"time"

	"github.com/musterd/muster/coordinator/objects"
	"github.com/musterd/muster/resource"
)

// Bounds of the views that are kept for the next pages of lists.
const (
	mostKept = 64
	keptFor  = 30 * time.Second
)

// keptView is a view that a list goes on with.
type keptView struct {
	view *objects.View
	at   time.Time
}

// Keep keeps a view for a while, since a list goes on with it.
func (f *Follower) Keep(v *objects.View) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	for i, k := range f.kept {
		if k.view.Revision() == v.Revision() {
			f.kept = append(append(f.kept[:i:i], f.kept[i+1:]...), keptView{k.view, now})
			return
		}
	}
	f.kept = append(f.kept, keptView{v, now})
	if len(f.kept) > mostKept {
		f.kept = append([]keptView(nil), f.kept[1:]...)
	}
}

// dropKept forgets the views that nobody has asked for again. f.mu is held.
func (f *Follower) dropKept(now time.Time) {
	for len(f.kept) > 0 && now.Sub(f.kept[0].at) > keptFor {
		f.kept = append([]keptView(nil), f.kept[1:]...)
	}
}

// ViewAt is all objects as they were at a revision: a view that was kept, or
// made anew of the store's past. An error is a *objects.GoneError where the store
// has been compacted since.
func (f *Follower) ViewAt(ctx context.Context, at resource.Revision) (*objects.View, error) {
	if v := f.keptAt(at); v != nil {
		return v, nil
	}
	if err := f.catchUpTo(ctx, objects.AllOf(at)); err != nil {
		return nil, err
	}
	r, err := f.replay(ctx, objects.AllOf(at), objects.Allocations)
	if err != nil {
		return nil, err
	}
	defer r.close()
	return r.cache.View(at, time.Now()), nil
}

// KeptView is the view of a revision as long as it is kept, nil afterwards. A list of
// events goes on with no other: the store's past does not have them.
func (f *Follower) KeptView(at resource.Revision) *objects.View { return f.keptAt(at) }

func (f *Follower) keptAt(at resource.Revision) *objects.View {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, k := range f.kept {
		if k.view.Revision() == at {
			return k.view.At(time.Now())
		}
	}
	return nil
}
