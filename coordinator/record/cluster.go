package record

import "errors"

// Cluster says to which cluster a store belongs (ClusterKey). The first
// coordinator that starts on the store writes it, and it never changes.
type Cluster struct {
	Name string `json:"name"`
}

func (c Cluster) check() error {
	if c.Name == "" {
		return errors.New("name is empty")
	}
	return nil
}
