package follow

import (
	"strings"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// News is a sign of a live agent in the store: it has registered, perhaps with
// another coordinator. Every registration writes the specification, one of a
// new incarnation the identity as well. Or its node was deleted.
type News struct {
	Node        resource.NodeID
	Deleted     bool
	Followed    bool                 // only the leader needs to know
	BanChanged  bool                 // it was banned, or is no longer: nothing else is news
	Incarnation resource.Incarnation // zero: as before
	Spec        *record.NodeSpec     // as it is now; nil: as before
	Revision    resource.Revision    // of spec
}

// newsOf is the news in a change, before the cache takes the change. f.mu is
// held.
func (f *Follower) newsOf(e record.Event) (News, bool) {
	if strings.HasPrefix(e.KV.Key, record.BansPrefix) {
		return banNews(e)
	}
	if !strings.HasPrefix(e.KV.Key, record.NodesPrefix) {
		return News{}, false
	}
	key, err := record.ParseNodeKey(e.KV.Key)
	if err != nil {
		return News{}, false // it is refused where it is shown
	}
	n := News{Node: key.ID}
	if e.Type == record.EventDelete {
		n.Deleted = key.Part == record.NodeSpecPart
		return n, n.Deleted
	}
	switch key.Part {
	case record.NodeIdentityPart:
		identity, err := record.Decode[record.NodeIdentity](e.KV.Key, e.KV.Value)
		if err != nil {
			return News{}, false
		}
		if n.Followed = identity.Fenced; !n.Followed {
			n.Incarnation = identity.Incarnation
		}
	case record.NodeSpecPart:
		spec, err := record.Decode[record.NodeSpec](e.KV.Key, e.KV.Value)
		if err != nil {
			return News{}, false
		}
		n.Spec, n.Revision = &spec, e.KV.ModRev
	case record.NodeStatusPart:
		n.Followed = true
	default:
		return News{}, false
	}
	return n, true
}

// banNews is the news of a change below record.BansPrefix.
func banNews(e record.Event) (News, bool) {
	id, err := record.ParseBanKey(e.KV.Key)
	return News{Node: id, BanChanged: true}, err == nil
}
