package ipc

import (
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"strconv"

	"github.com/hashicorp/serf/coordinate"
	"github.com/hashicorp/serf/serf"
)

// commands are the requests of a client that has shown the token.
var commands = map[string]func(*connection, uint64) error{
	"event":            (*connection).event,
	"force-leave":      (*connection).forceLeave,
	"get-coordinate":   (*connection).coordinate,
	"install-key":      func(c *connection, seq uint64) error { return c.changeKeys(seq, Keys.Install) },
	"join":             (*connection).join,
	"leave":            (*connection).leave,
	"list-keys":        (*connection).listKeys,
	"members":          (*connection).members,
	"members-filtered": (*connection).membersFiltered,
	"monitor":          (*connection).monitor,
	"query":            (*connection).query,
	"remove-key":       func(c *connection, seq uint64) error { return c.changeKeys(seq, Keys.Remove) },
	"respond":          (*connection).respond,
	"stats":            (*connection).stats,
	"stop":             (*connection).stop,
	"stream":           (*connection).streamEvents,
	"tags":             (*connection).tags,
	"use-key":          func(c *connection, seq uint64) error { return c.changeKeys(seq, Keys.Use) },
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func (c *connection) event(seq uint64) error {
	var r eventRequest
	if err := c.dec.Decode(&r); err != nil {
		return err
	}
	return c.send(seq, text(c.server.config.Serf.UserEvent(r.Name, r.Payload, r.Coalesce)), nil)
}

func (c *connection) forceLeave(seq uint64) error {
	var r forceLeaveRequest
	if err := c.dec.Decode(&r); err != nil {
		return err
	}
	remove := c.server.config.Serf.RemoveFailedNode
	if r.Prune {
		remove = c.server.config.Serf.RemoveFailedNodePrune
	}
	return c.send(seq, text(remove(r.Node)), nil)
}

func (c *connection) coordinate(seq uint64) error {
	var r coordinateRequest
	if err := c.dec.Decode(&r); err != nil {
		return err
	}
	response := coordinateResponse{Coord: coordinate.Coordinate{}}
	if found, ok := c.server.config.Serf.GetCachedCoordinate(r.Node); ok {
		response = coordinateResponse{*found, true}
	}
	return c.send(seq, "", &response)
}

func (c *connection) join(seq uint64) error {
	var r joinRequest
	if err := c.dec.Decode(&r); err != nil {
		return err
	}
	n, err := c.server.config.Serf.Join(r.Existing, !r.Replay)
	return c.send(seq, text(err), &joinResponse{int32(n)})
}

// leave leaves the ring and ends the member; the process goes on.
func (c *connection) leave(seq uint64) error {
	ring := c.server.config.Serf
	err := c.send(seq, text(ring.Leave()), nil)
	return errors.Join(err, ring.Shutdown())
}

func (c *connection) members(seq uint64) error {
	return c.send(seq, "", &membersResponse{membersOf(c.server.config.Serf.Members())})
}

func (c *connection) membersFiltered(seq uint64) error {
	var r membersFiltered
	if err := c.dec.Decode(&r); err != nil {
		return err
	}
	list, err := filtered(c.server.config.Serf.Members(), r)
	return c.send(seq, text(err), &membersResponse{membersOf(list)})
}

// filtered returns the members that all the patterns match as a whole.
func filtered(members []serf.Member, r membersFiltered) ([]serf.Member, error) {
	name, err := pattern(r.Name)
	if err != nil {
		return nil, err
	}
	status, err := pattern(r.Status)
	if err != nil {
		return nil, err
	}
	tags := map[string]func(string) bool{}
	for tag, expression := range r.Tags {
		if tags[tag], err = pattern(expression); err != nil {
			return nil, err
		}
	}
	var list []serf.Member
next:
	for _, m := range members {
		if !name(m.Name) || !status(m.Status.String()) {
			continue
		}
		for tag, matches := range tags {
			if !matches(m.Tags[tag]) {
				continue next
			}
		}
		list = append(list, m)
	}
	return list, nil
}

// pattern is a regular expression for a whole text; an empty one matches all.
func pattern(expression string) (func(string) bool, error) {
	if expression == "" {
		return func(string) bool { return true }, nil
	}
	re, err := regexp.Compile("^" + expression + "$")
	if err != nil {
		return nil, fmt.Errorf("filter %q: %w", expression, err)
	}
	return re.MatchString, nil
}

func (c *connection) tags(seq uint64) error {
	var r tagsRequest
	if err := c.dec.Decode(&r); err != nil {
		return err
	}
	tags := map[string]string{}
	for key, value := range c.server.config.Serf.LocalMember().Tags {
		tags[key] = value
	}
	for _, key := range r.DeleteTags {
		delete(tags, key)
	}
	for key, value := range r.Tags {
		tags[key] = value
	}
	var err error
	if check := c.server.config.CheckTags; check != nil {
		err = check(tags)
	}
	if err == nil {
		err = c.server.config.Serf.SetTags(tags)
	}
	return c.send(seq, text(err), nil)
}

func (c *connection) stats(seq uint64) error {
	local := c.server.config.Serf.LocalMember()
	return c.send(seq, "", map[string]map[string]string{
		"agent": {"name": local.Name},
		"runtime": {
			"os": runtime.GOOS, "arch": runtime.GOARCH, "version": runtime.Version(),
			"max_procs": strconv.Itoa(runtime.GOMAXPROCS(0)), "goroutines": strconv.Itoa(runtime.NumGoroutine()), "cpu_count": strconv.Itoa(runtime.NumCPU()),
		},
		"serf":           c.server.config.Serf.Stats(),
		"tags":           local.Tags,
		"event_handlers": {},
	})
}

func (c *connection) respond(seq uint64) error {
	var r respondRequest
	if err := c.dec.Decode(&r); err != nil {
		return err
	}
	return c.send(seq, text(c.answer(r.ID, r.Payload)), nil)
}

// stop ends the streams under a sequence; it always succeeds.
func (c *connection) stop(seq uint64) error {
	var r stopRequest
	if err := c.dec.Decode(&r); err != nil {
		return err
	}
	c.stopStream(r.Stop)
	return c.send(seq, "", nil)
}
