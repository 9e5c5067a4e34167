package lead

import "github.com/musterd/muster/api"

// TreeInForce is a quota tree as the leader itself has it, with the placements that
// decide. Reads show Trees, which are made of keys.
func (l *Leader) TreeInForce(name string) (*api.QuotaTree, *api.Status) {
	t, status := l.quotaTree(name)
	if status != nil {
		return nil, status
	}
	return l.quotaTreeObject(t), nil
}
