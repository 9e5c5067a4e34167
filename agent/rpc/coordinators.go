package rpc

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/musterd/muster/rpcauth"
)

// callTimeout bounds one call to one coordinator.
const callTimeout = 5 * time.Second

// Coordinators calls whichever of the known coordinators answers. Its methods
// may block for callTimeout per known coordinator, end early with their
// context, and may be used by several goroutines.
type Coordinators struct {
	addresses func() []string
	member    rpcauth.Member
	dialer    Dialer

	mu          sync.Mutex
	connections map[string]*grpc.ClientConn
	last        string // the address that answered last: tried first
}

// NewCoordinators returns a client of the coordinators that addresses lists;
// it is called again before every attempt, as gossip finds and loses some.
func NewCoordinators(addresses func() []string, member rpcauth.Member, dialer Dialer) *Coordinators {
	return &Coordinators{addresses: addresses, member: member, dialer: dialer, connections: map[string]*grpc.ClientConn{}}
}

// Close closes every connection.
func (c *Coordinators) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	for address, conn := range c.connections {
		errs = append(errs, conn.Close())
		delete(c.connections, address)
	}
	return errors.Join(errs...)
}

// ErrNoCoordinator means that no coordinator is known yet.
var ErrNoCoordinator = errors.New("no coordinator is known: none is configured and gossip has found none")

// each tries the call on one coordinator after the other until one answers
// without error, the one that answered last first. The error joins one entry
// per coordinator.
func (c *Coordinators) each(ctx context.Context, what string, call func(ctx context.Context, conn *grpc.ClientConn) error) error {
	order := c.order()
	if len(order) == 0 {
		return fmt.Errorf("%s: %w", what, ErrNoCoordinator)
	}
	var errs []error
	for _, address := range order {
		err := c.try(ctx, address, call)
		if err == nil {
			c.mu.Lock()
			c.last = address
			c.mu.Unlock()
			return nil
		}
		errs = append(errs, fmt.Errorf("%s: coordinator %s: %w", what, address, err))
		if ctx.Err() != nil || final(err) {
			break
		}
	}
	return errors.Join(errs...)
}

// final reports whether another coordinator would say the same: they all read
// one store.
func final(err error) bool {
	switch status.Code(err) {
	case codes.InvalidArgument, codes.NotFound, codes.FailedPrecondition:
		return true
	}
	return false
}

func (c *Coordinators) try(ctx context.Context, address string, call func(ctx context.Context, conn *grpc.ClientConn) error) error {
	conn, err := c.connection(address)
	if err != nil {
		return err
	}
	return call(ctx, conn)
}

// order lists the known addresses, the last good one first, and closes
// connections to addresses that are no longer known.
func (c *Coordinators) order() []string {
	known := slices.Clone(c.addresses())
	slices.Sort(known)
	known = slices.Compact(known)
	c.mu.Lock()
	defer c.mu.Unlock()
	for address, conn := range c.connections {
		if !slices.Contains(known, address) {
			conn.Close()
			delete(c.connections, address)
		}
	}
	if i := slices.Index(known, c.last); i > 0 {
		known = append([]string{c.last}, slices.Delete(known, i, i+1)...)
	}
	return known
}

func (c *Coordinators) connection(address string) (*grpc.ClientConn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if conn, ok := c.connections[address]; ok {
		return conn, nil
	}
	conn, err := Dial(address, c.member, c.dialer)
	if err != nil {
		return nil, err
	}
	c.connections[address] = conn
	return conn, nil
}
