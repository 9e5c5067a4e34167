package gossip

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/musterd/muster/gossip/digest"
)

// coordinatorPrefix begins the name of each coordinator in the rings. No node id
// has a '_', so that an agent and a coordinator never have one name, even where
// both are named after their host.
const coordinatorPrefix = "coordinator_"

// CoordinatorName is the name of a coordinator in both rings: the prefix
// "coordinator_" and its id. Where both together are longer than a name may be,
// the end of the id is replaced by 8 hexadecimal digits of its hash.
func CoordinatorName(id string) string {
	name := coordinatorPrefix + id
	if len(name) <= digest.MaxNodeID {
		return name
	}
	hash := sha256.Sum256([]byte(id))
	end := "_" + hex.EncodeToString(hash[:4])
	return name[:digest.MaxNodeID-len(end)] + end
}
