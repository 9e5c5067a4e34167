package gate

import (
	"context"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/service"
)

// Room is memory, or another amount of a coordinator, that requests need for a moment. It
// is shared as the seats of a Queue are, so that a flood of one tenant delays a request of
// another tenant by one request of the flood.
type Room struct{ queue *Queue }

// roomWithin is how long a request waits for room.
const roomWithin = 2 * time.Second

// The rooms of a coordinator.
const (
	// maxYAML bounds the YAML that is being converted, in bytes: the conversion
	// takes up to a hundred times the memory.
	maxYAML = api.MaxDocument
	// maxDecoded bounds the JSON and the messages that are being decoded, in bytes:
	// their values take up to fifteen times the memory.
	maxDecoded = api.MaxDocument
	// SmallDocument is the length up to which a document needs no room to be decoded, in
	// bytes; hardly any is larger.
	SmallDocument = 64 << 10
	// MaxLists is how many lists are made at a time; mostLists more may wait, and
	// mostListsOfUser of one user.
	MaxLists        = 4
	mostLists       = 64
	mostListsOfUser = 64
)

// Rooms are those of one coordinator, over REST and gRPC together.
type Rooms struct {
	// YAML and Decoded are in bytes, Lists in lists.
	YAML, Decoded, Lists *Room
	// heavy is in requests of a cost of heavy or more.
	heavy *Room
}

func newRooms() Rooms {
	lists := newRoom(MaxLists)
	lists.queue.mostQueued, lists.queue.mostQueuedOfUser = mostLists, mostListsOfUser
	large := newRoom(mostHeavy)
	large.queue.mostOfGroup = 1
	return Rooms{YAML: newRoom(maxYAML), Decoded: newRoom(maxDecoded), Lists: lists, heavy: large}
}

func newRoom(most int64) *Room {
	q := newQueue(most, most)
	q.within = roomWithin
	return &Room{q}
}

// Take waits for n of the room, at most for two seconds; a request for more than there is
// takes all. The caller calls release once where ok is true.
func (r *Room) Take(ctx context.Context, p service.Principal, n int64) (release func(), ok bool) {
	n = min(n, r.queue.most)
	user := ownerOf(p)
	if r.queue.take(ctx, user, n) != granted {
		return nil, false
	}
	return func() { r.queue.leave(user, n) }, true
}
