package record

import (
	"fmt"
	"strings"

	"github.com/musterd/muster/resource"
)

// The roots of the key space (PROTOCOL.md section 1). Each ends in '/', so that
// a Range over one never meets its neighbour.
const (
	Root           = "/registry/"
	LeaderPrefix   = Root + "leader/"
	JobsPrefix     = Root + "jobs/"
	UnitsPrefix    = Root + "units/"
	OrderPrefix    = Root + "order/"
	RequestsPrefix = Root + "requests/"
	TxPrefix       = Root + "tx/"
	ReadyPrefix    = Root + "ready/"
	NodesPrefix    = Root + "nodes/"
	QuotaPrefix    = Root + "quota/"
	// TenantsPrefix and NamespacesPrefix hold Object.
	TenantsPrefix    = Root + "tenants/"
	NamespacesPrefix = Root + "namespaces/"
	// ResourcesPrefix holds Object. The "/" in a resource's name is encoded.
	ResourcesPrefix = Root + "resources/"
	// QueuesPrefix holds Object.
	QueuesPrefix = Root + "queues/"
	// PriorityClassesPrefix holds Object.
	PriorityClassesPrefix = Root + "priorityclasses/"
	// QuotaForestsPrefix and QuotaBindingsPrefix hold Quota: the keys of QuotaForests
	// and QuotaNamespaces.
	QuotaForestsPrefix  = QuotaPrefix + "forests/"
	QuotaBindingsPrefix = QuotaPrefix + "namespaces/"
	// ClusterKey holds Cluster. It lies below no prefix.
	ClusterKey = Root + "cluster"
	// ConfiguredKey holds Configured. It lies below no prefix.
	ConfiguredKey = Root + "configured"
	// TermsPrefix holds Term: the candidacies for the leader's office.
	TermsPrefix = Root + "terms/"
	// RestoredPrefix holds Restored: the declared restorations.
	RestoredPrefix = Root + "restored/"
	// LastRestoredKey holds the last Restored again, below no prefix.
	LastRestoredKey = Root + "restored"
	// LevelsPrefix holds KnownLevel, and RaiseKey. Coordinators of older versions do not
	// read the prefix.
	LevelsPrefix = Root + "levels/"
	// RaiseKey holds Raise.
	RaiseKey = LevelsPrefix + "raise"

	candidateLevels = LevelsPrefix + "coordinators/"
	nodeLevels      = LevelsPrefix + "nodes/"
)

// CandidateLevelKey is the key of the newest level known to the candidate with a lease; the
// key has the lease of the candidacy.
func CandidateLevelKey(lease LeaseID) string { return CandidateKey(candidateLevels, lease) }

// LevelOfCandidate is the key beside a candidate's key below LeaderPrefix.
func LevelOfCandidate(key string) string {
	return candidateLevels + strings.TrimPrefix(key, LeaderPrefix)
}

// NodeLevelKey is the key of the newest level known to a node's agent.
func NodeLevelKey(id resource.NodeID) string { return join(nodeLevels, string(id)) }

// TermKey is the key of the term with a mark; the create revision is the term's epoch.
func TermKey(mark string) string { return join(TermsPrefix, mark) }

// RestoredKey is the key of a restoration noticed at a revision of the restored store.
func RestoredKey(at resource.Revision) string {
	return RestoredPrefix + fmt.Sprintf("%016x", int64(at))
}

// NamedKey is the key of an object that has a name alone, below a prefix of its kind.
func NamedKey(prefix, name string) string { return join(prefix, name) }

// ParseNamedKey is the inverse of NamedKey; noun names the kind in an error.
func ParseNamedKey(noun, key, prefix string) (name string, err error) {
	err = split(noun, key, prefix, &name)
	return name, err
}

// ParseTenantKey returns the tenant whose object has the key.
func ParseTenantKey(key string) (name string, err error) {
	err = split("tenant", key, TenantsPrefix, &name)
	return name, err
}

// ParseNamespaceKey returns the namespace whose object has the key.
func ParseNamespaceKey(key string) (name string, err error) {
	err = split("namespace", key, NamespacesPrefix, &name)
	return name, err
}

// JobKey is the key of a job's record.
func JobKey(namespace, name string) string { return join(JobsPrefix, namespace, name) }

// ParseJobKey is the inverse of JobKey.
func ParseJobKey(key string) (namespace, name string, err error) {
	err = split("job", key, JobsPrefix, &namespace, &name)
	return namespace, name, err
}

// RequestKey is the key that remembers a client's request id, so that a
// repeated submit finds what the first one made.
func RequestKey(tenant resource.TenantID, id string) string {
	return join(RequestsPrefix, string(tenant), id)
}

// ParseRequestKey is the inverse of RequestKey.
func ParseRequestKey(key string) (tenant resource.TenantID, id string, err error) {
	var t string
	err = split("request", key, RequestsPrefix, &t, &id)
	return resource.TenantID(t), id, err
}

// TxKey is the key of a transaction's record: the commit point.
func TxKey(tx resource.TxID) string { return join(TxPrefix, string(tx)) }

// ParseTxKey is the inverse of TxKey.
func ParseTxKey(key string) (resource.TxID, error) {
	var tx string
	err := split("transaction", key, TxPrefix, &tx)
	return resource.TxID(tx), err
}

// ReadyKey is the key that says that all members of a transaction are held.
func ReadyKey(tx resource.TxID) string { return join(ReadyPrefix, string(tx)) }

// ParseReadyKey is the inverse of ReadyKey.
func ParseReadyKey(key string) (resource.TxID, error) {
	var tx string
	err := split("ready", key, ReadyPrefix, &tx)
	return resource.TxID(tx), err
}

// NodePart says which of a node's keys a key is.
type NodePart uint8

// The parts of a node.
const (
	NodeIdentityPart NodePart = iota // NodeIdentity
	NodeSpecPart                     // NodeSpec
	NodeStatusPart                   // NodeStatus
	NodeLeasePart                    // NodeLease
	NodeObservedPart                 // NodeObserved
	NodeLostPart                     // NodeLost
	NodeTxPart                       // NodeTx, one key per transaction
)

// nodePartNames are the segments that NodePart stands for.
var nodePartNames = [...]string{"identity", "spec", "status", "lease", "observed", "lost", "tx"}

// NodeIdentityKey is the key of a node's incarnation and fence.
func NodeIdentityKey(id resource.NodeID) string { return nodeKey(id, NodeIdentityPart) }

// NodeSpecKey is the key of what a node has.
func NodeSpecKey(id resource.NodeID) string { return nodeKey(id, NodeSpecPart) }

// NodeStatusKey is the key of the last report of a node's agent.
func NodeStatusKey(id resource.NodeID) string { return nodeKey(id, NodeStatusPart) }

// NodeLeaseKey is the key that lives as long as a node's agent is heard.
func NodeLeaseKey(id resource.NodeID) string { return nodeKey(id, NodeLeasePart) }

// NodeObservedKey is the key of the leader's observation of a node.
func NodeObservedKey(id resource.NodeID) string { return nodeKey(id, NodeObservedPart) }

// NodeLostKey is the key of the devices of a node that are held and lost.
func NodeLostKey(id resource.NodeID) string { return nodeKey(id, NodeLostPart) }

// NodeIn is the prefix of all keys of a node.
func NodeIn(id resource.NodeID) string {
	return string(append(appendSegment([]byte(NodesPrefix), string(id)), '/'))
}

// NodeTxKey is the per-node index entry of a transaction.
func NodeTxKey(id resource.NodeID, tx resource.TxID) string {
	return string(appendSegment([]byte(NodeTxIn(id)), string(tx)))
}

// NodeTxIn is the prefix of a node's index of transactions.
func NodeTxIn(id resource.NodeID) string { return nodeKey(id, NodeTxPart) + "/" }

func nodeKey(id resource.NodeID, part NodePart) string {
	b := make([]byte, 0, len(NodesPrefix)+len(id)+16)
	b = appendSegment(append(b, NodesPrefix...), string(id))
	return string(append(append(b, '/'), nodePartNames[part]...))
}

// NodeKey is a parsed key below NodesPrefix. Tx is set for NodeTxPart only.
type NodeKey struct {
	ID   resource.NodeID
	Part NodePart
	Tx   resource.TxID
}

// ParseNodeKey reads any key below NodesPrefix.
func ParseNodeKey(key string) (NodeKey, error) {
	var id, part, tx string
	if err := split("node", key, NodesPrefix, &id, &part); err == nil {
		for p := NodeIdentityPart; p < NodeTxPart; p++ {
			if part == nodePartNames[p] {
				return NodeKey{ID: resource.NodeID(id), Part: p}, nil
			}
		}
	} else if err := split("node", key, NodesPrefix, &id, &part, &tx); err != nil {
		return NodeKey{}, err
	} else if part == nodePartNames[NodeTxPart] {
		return NodeKey{ID: resource.NodeID(id), Part: NodeTxPart, Tx: resource.TxID(tx)}, nil
	}
	return NodeKey{}, fmt.Errorf("node key %q: %q is not identity, spec, status, lease, observed, lost or tx/<tx>", key, part)
}

// QuotaKind says what a key below QuotaPrefix holds.
type QuotaKind string

// The kinds, which are also their path segments. All but QuotaLimits, QuotaModes
// and QuotaSeats hold Quota.
const (
	QuotaTrees      QuotaKind = "trees"          // a tree by its name
	QuotaForests    QuotaKind = "forests"        // a forest by its name
	QuotaNamespaces QuotaKind = "namespaces"     // the groups a namespace is bound to
	QuotaResources  QuotaKind = "resourcequotas" // a resource quota by namespace and name
	// QuotaLimits held one QuotaLimit per namespace before there were resource
	// quotas: it is read, and rewritten as one of them.
	QuotaLimits QuotaKind = "limits"
	// QuotaModes holds one QuotaMode, QuotaModeKey.
	QuotaModes QuotaKind = "mode"
	// QuotaSeats holds one Seats per transaction whose unit has moved on a tree since
	// its commit, by the transaction.
	QuotaSeats QuotaKind = "seats"
)

// QuotaKey is a parsed key below QuotaPrefix. Namespace is set for
// QuotaResources only: of QuotaNamespaces and QuotaLimits the name is the
// namespace.
type QuotaKey struct {
	Kind            QuotaKind
	Namespace, Name string
}

// Key is the key's text.
func (k QuotaKey) Key() string {
	if k.Kind == QuotaResources {
		return join(QuotaPrefix, string(k.Kind), k.Namespace, k.Name)
	}
	return join(QuotaPrefix, string(k.Kind), k.Name)
}

// ParseQuotaKey is the inverse of QuotaKey.Key.
func ParseQuotaKey(key string) (QuotaKey, error) {
	var kind, namespace, name string
	if err := split("quota", key, QuotaPrefix, &kind, &namespace, &name); err == nil {
		if k := QuotaKind(kind); k == QuotaResources {
			return QuotaKey{Kind: k, Namespace: namespace, Name: name}, nil
		}
		return QuotaKey{}, fmt.Errorf("quota key %q: %q is not resourcequotas", key, kind)
	}
	if err := split("quota", key, QuotaPrefix, &kind, &name); err != nil {
		return QuotaKey{}, err
	}
	switch k := QuotaKind(kind); k {
	case QuotaTrees, QuotaForests, QuotaNamespaces, QuotaLimits, QuotaModes, QuotaSeats:
		return QuotaKey{Kind: k, Name: name}, nil
	}
	return QuotaKey{}, fmt.Errorf("quota key %q: %q is not trees, forests, namespaces, resourcequotas/<namespace>, limits, mode or seats", key, kind)
}

// LeaderKey is the key of a candidate, whose lease it is named after.
func LeaderKey(lease LeaseID) string { return CandidateKey(LeaderPrefix, lease) }
