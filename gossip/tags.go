package gossip

import (
	"fmt"
	"net/netip"

	"github.com/hashicorp/go-msgpack/v2/codec"

	"github.com/musterd/muster/gossip/digest"
	"github.com/musterd/muster/resource"
)

// Role is the kind of a member of the serf ring.
type Role string

const (
	RoleAgent       Role = "agent"
	RoleCoordinator Role = "coordinator"
)

// MaxTags bounds the encoded tags: every tag costs its bytes on every join.
const MaxTags = 300

// Tags are a member's statements about itself, seldom changing and never
// believed: a caller that dials Addr checks the identity of the party that
// answers.
type Tags struct {
	Role Role
	ID   string // the member's name: an agent's node id, CoordinatorName of a coordinator's id
	Addr string // "host:port" of its gRPC service
	// The host's place and its GPU model; empty where unknown.
	Zone, Rack, Block, Model string
	// API is the newest version of muster's API that the member speaks.
	API string
	// Cell and Capacity are the member's capacity ring and its address there.
	Cell     string
	Capacity string
}

// fields lists every tag with its key, in the order of the struct.
func (t *Tags) fields() []tagField {
	return []tagField{
		{"role", (*string)(&t.Role)},
		{"id", &t.ID},
		{"addr", &t.Addr},
		{"zone", &t.Zone},
		{"rack", &t.Rack},
		{"block", &t.Block},
		{"model", &t.Model},
		{"api", &t.API},
		{"cell", &t.Cell},
		{"cap", &t.Capacity},
	}
}

type tagField struct {
	key   string
	value *string
}

// Validate reports the first rule that t breaks, naming the tag, its value and
// the size where that is the matter.
func (t Tags) Validate() error {
	if t.Role != RoleAgent && t.Role != RoleCoordinator {
		return fmt.Errorf("tag role %q: want %q or %q", t.Role, RoleAgent, RoleCoordinator)
	}
	if err := digest.ValidNodeID(resource.NodeID(t.ID)); err != nil {
		return fmt.Errorf("tag id: %w", err)
	}
	if _, err := netip.ParseAddrPort(t.Addr); err != nil {
		return fmt.Errorf("tag addr %q: want an IP address and a port", t.Addr)
	}
	if t.Capacity != "" {
		if _, err := netip.ParseAddrPort(t.Capacity); err != nil {
			return fmt.Errorf("tag cap %q: want an IP address and a port", t.Capacity)
		}
	}
	for _, f := range t.fields() {
		for i := range len(*f.value) {
			if c := (*f.value)[i]; c < ' ' || c == 0x7f {
				return fmt.Errorf("tag %s %q: control character at %d", f.key, *f.value, i)
			}
		}
	}
	if n := t.size(); n >= MaxTags {
		return fmt.Errorf("tags of %s: %d bytes encoded, want less than %d; shorten %s", t.ID, n, MaxTags, t.longest())
	}
	return nil
}

// size bounds serf's encoding from above: a marker, a map header, and at most
// three bytes before each string.
func (t Tags) size() int {
	n := 1 + 3
	for key, value := range t.encode() {
		n += 3 + len(key) + 3 + len(value)
	}
	return n
}

func (t Tags) longest() string {
	longest := tagField{"id", &t.ID}
	for _, f := range t.fields() {
		if len(*f.value) > len(*longest.value) {
			longest = f
		}
	}
	return fmt.Sprintf("%s (%d bytes)", longest.key, len(*longest.value))
}

// encode returns serf's form, without tags that are empty.
func (t Tags) encode() map[string]string {
	m := make(map[string]string)
	for _, f := range t.fields() {
		if *f.value != "" {
			m[f.key] = *f.value
		}
	}
	return m
}

// decodeTags reads serf's form and ignores keys it does not know. A member
// without one of Muster's roles, such as a stock serf agent, has the zero Tags.
func decodeTags(m map[string]string) Tags {
	var t Tags
	if r := Role(m["role"]); r != RoleAgent && r != RoleCoordinator {
		return t
	}
	for _, f := range t.fields() {
		*f.value = m[f.key]
	}
	return t
}

// tagMagicByte begins serf's encoding of tags; a map in msgpack follows it.
const tagMagicByte = 255

// parseTags reads a member's metadata as serf does. Metadata without the magic
// byte is a role alone.
func parseTags(meta []byte) (map[string]string, error) {
	if len(meta) == 0 || meta[0] != tagMagicByte {
		return map[string]string{"role": string(meta)}, nil
	}
	m := make(map[string]string)
	if err := codec.NewDecoderBytes(meta[1:], &codec.MsgpackHandle{}).Decode(&m); err != nil {
		return nil, fmt.Errorf("%d bytes that are no map of strings in msgpack: %w", len(meta), err)
	}
	return m, nil
}
