package ipc

import (
	"net"
	"time"

	"github.com/hashicorp/serf/coordinate"
	"github.com/hashicorp/serf/serf"
)

// version is the only one of the protocol.
const version = 1

// The texts of errors that the stock client compares or prints.
const (
	unsupportedCommand = "Unsupported command"
	unsupportedVersion = "Unsupported IPC version"
	duplicateHandshake = "Handshake already performed"
	handshakeRequired  = "Handshake required"
	monitorExists      = "Monitor already exists"
	invalidFilter      = "Invalid event filter"
	streamExists       = "Stream with given sequence exists"
	tooManyStreams     = "Too many streams on one connection"
	invalidQueryID     = "No pending queries matching ID"
	authRequired       = "Authentication required"
	invalidAuthToken   = "Invalid authentication token"
)

// The bodies, named by command. Field names are the protocol.
type (
	requestHeader struct {
		Command string
		Seq     uint64
	}
	responseHeader struct {
		Seq   uint64
		Error string
	}
	handshakeRequest struct{ Version int32 }
	authRequest      struct{ AuthKey string }
	eventRequest     struct {
		Name     string
		Payload  []byte
		Coalesce bool
	}
	forceLeaveRequest struct {
		Node  string
		Prune bool
	}
	joinRequest struct {
		Existing []string
		Replay   bool
	}
	joinResponse    struct{ Num int32 }
	membersFiltered struct {
		Tags   map[string]string
		Status string
		Name   string
	}
	membersResponse struct{ Members []member }
	keyRequest      struct{ Key string }
	keyResponse     struct {
		Messages map[string]string
		Keys     map[string]int
		NumNodes int
		NumErr   int
		NumResp  int
	}
	monitorRequest struct{ LogLevel string }
	streamRequest  struct{ Type string }
	stopRequest    struct{ Stop uint64 }
	tagsRequest    struct {
		Tags       map[string]string
		DeleteTags []string
	}
	queryRequest struct {
		FilterNodes []string
		FilterTags  map[string]string
		RequestAck  bool
		RelayFactor uint8
		Timeout     time.Duration
		Name        string
		Payload     []byte
	}
	respondRequest struct {
		ID      uint64
		Payload []byte
	}
	coordinateRequest  struct{ Node string }
	coordinateResponse struct {
		Coord coordinate.Coordinate
		Ok    bool
	}
	queryRecord struct {
		Type    string // ack, response or done
		From    string
		Payload []byte
	}
	logRecord   struct{ Log string }
	eventRecord struct {
		Event    string
		LTime    serf.LamportTime
		Name     string
		Payload  []byte
		Coalesce bool
	}
	queryEventRecord struct {
		Event   string
		ID      uint64
		LTime   serf.LamportTime
		Name    string
		Payload []byte
	}
	memberEventRecord struct {
		Event   string
		Members []member
	}
)

type member struct {
	Name        string
	Addr        net.IP
	Port        uint16
	Tags        map[string]string
	Status      string
	ProtocolMin uint8
	ProtocolMax uint8
	ProtocolCur uint8
	DelegateMin uint8
	DelegateMax uint8
	DelegateCur uint8
}

func membersOf(list []serf.Member) []member {
	out := make([]member, 0, len(list))
	for _, m := range list {
		out = append(out, member{
			m.Name, m.Addr, m.Port, m.Tags, m.Status.String(),
			m.ProtocolMin, m.ProtocolMax, m.ProtocolCur, m.DelegateMin, m.DelegateMax, m.DelegateCur,
		})
	}
	return out
}
