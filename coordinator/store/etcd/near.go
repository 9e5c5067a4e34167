package etcd

import (
	"sync/atomic"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// near is a connection of its own to the member that leads the cluster, for reads of one
// key: another member would first ask the leader. Any member answers such a read
// rightly, so a connection to a member that leads no more costs time alone. A read that
// fails there is repeated over the other connections.
type near struct {
	dial func(endpoint string) (*clientv3.Client, error)
	// current is the connection that reads use, nil for none. Readers set it to nil
	// alone; all else is the monitor's goroutine's and, after its end, Close's.
	current atomic.Pointer[nearMember]
	open    *nearMember
}

type nearMember struct {
	endpoint string
	kv       pb.KVClient
	client   *clientv3.Client
}

// prefer has reads go to a member, "" for none.
func (n *near) prefer(endpoint string) error {
	if n.open != nil && n.open.endpoint == endpoint && n.current.Load() == n.open {
		return nil
	}
	if err := n.close(); err != nil || endpoint == "" {
		return err
	}
	client, err := n.dial(endpoint)
	if err != nil {
		return err
	}
	n.open = &nearMember{endpoint: endpoint, kv: pb.NewKVClient(client.ActiveConnection()), client: client}
	n.current.Store(n.open)
	return nil
}

// close ends the connection. Reads over it are repeated elsewhere.
func (n *near) close() error {
	n.current.Store(nil)
	was := n.open
	n.open = nil
	if was == nil {
		return nil
	}
	return closeClient(was.client)
}

// drop has reads use a connection no more; the monitor closes it.
func (n *near) drop(m *nearMember) { n.current.CompareAndSwap(m, nil) }
