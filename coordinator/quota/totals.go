package quota

import "github.com/musterd/muster/resource"

// EachTotal calls visit with each node of a tree and each of the tree's resources:
// the node's quota and the sum that is charged there and below, in base units. It
// costs nothing per consumer. Nodes come before their children, resources ascend.
func (m *Manager) EachTotal(tree string, visit func(node string, r resource.Name, quota, allocated int64)) error {
	t, err := m.treeOf(tree)
	if err != nil {
		return err
	}
	for i := range t.nodes {
		quota, allocated := t.amount(int32(i), quotaOf), t.amount(int32(i), allocatedOf)
		for k, r := range t.resources {
			visit(t.nodes[i].name, r, quota[k], allocated[k])
		}
	}
	return nil
}
