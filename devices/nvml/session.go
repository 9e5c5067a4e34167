//go:build cgo && linux

package nvml

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/musterd/muster/devices"
)

// session is the library while a watch has it started. Its methods run in the
// jobs of one worker.
type session struct {
	source *Source
	asking asker

	started bool
	seen    *discovery // the last one, for its look-ups
	cards   []*card
	set     nvml.EventSet // nil: no events arrive
}

// connect starts the library and looks at all cards. An error means that the
// driver does not answer, or has more cards than can be used.
func (s *session) connect(known map[string]string) (sighting, error) {
	s.asking("nvmlInit_v2", nil)
	if err := s.source.start(); err != nil {
		return sighting{}, err
	}
	s.started = true
	s.seen = s.source.discovery(known, s.asking)
	seen, cards, err := s.seen.run()
	if err != nil {
		s.disconnect()
		return sighting{}, err
	}
	s.cards = cards
	return seen, nil
}

// disconnect shuts the library down, so that the driver can be unloaded. The
// answer does not matter: without a driver it has nothing to shut down.
func (s *session) disconnect() {
	s.deafen()
	s.cards = nil
	if s.started {
		s.asking("nvmlShutdown", nil)
		s.started = false
		_ = s.source.stop()
	}
}

// deafen gives up the event set.
func (s *session) deafen() {
	if s.set != nil {
		s.asking("nvmlEventSetFree", nil)
		_ = s.set.Free() // a set that cannot be freed goes with the library
		s.set = nil
	}
}

// listen has the driver record XIDs and double-bit errors of all cards from now
// on, and returns the error that kept it from that. Drivers older than event sets, and
// cards without events, are passed over in silence.
func (s *session) listen() []string {
	s.deafen()
	for _, symbol := range []string{"nvmlEventSetCreate", "nvmlDeviceRegisterEvents", "nvmlEventSetWait", "nvmlEventSetFree"} {
		if !s.source.has(symbol) {
			return nil
		}
	}
	s.asking("nvmlEventSetCreate", nil)
	set, ret := s.source.library.EventSetCreate()
	if ret != nvml.SUCCESS {
		return []string{fmt.Sprintf("XIDs are not heard: nvmlEventSetCreate: %v", answer(ret))}
	}
	s.set = set
	var warnings []string
	for _, c := range s.cards {
		ret := s.register(c)
		switch {
		case ret == nvml.SUCCESS, isUnsupported(ret), isLost(ret), isGone(ret):
		default:
			warnings = append(warnings, fmt.Sprintf("%v: XIDs are not heard: nvmlDeviceRegisterEvents: %v", c, answer(ret)))
		}
	}
	return warnings
}

// register asks for the events that the card has. Double-bit errors exist with
// ECC alone, and one type that is not supported refuses all.
func (s *session) register(c *card) nvml.Return {
	const wanted = nvml.EventTypeXidCriticalError | nvml.EventTypeDoubleBitEccError
	types := uint64(wanted)
	if s.source.has("nvmlDeviceGetSupportedEventTypes") {
		s.asking("nvmlDeviceGetSupportedEventTypes", c)
		if supported, ret := c.handle.GetSupportedEventTypes(); ret == nvml.SUCCESS {
			types &= supported
		}
	}
	if types == 0 {
		return nvml.ERROR_NOT_SUPPORTED
	}
	s.asking("nvmlDeviceRegisterEvents", c)
	ret := c.handle.RegisterEvents(types, s.set)
	if ret == nvml.ERROR_NOT_SUPPORTED && types == wanted {
		ret = c.handle.RegisterEvents(nvml.EventTypeXidCriticalError, s.set)
	}
	return ret
}

// notice is the result of one wait for an event.
type notice struct {
	event *devices.Event // nil: none came
	card  *card          // of a double-bit error, whose counter is to be read
	fault string         // the set cannot be waited on any more
	gone  string         // the driver is gone
}

// noInstance is the number of no GPU instance.
const noInstance = 0xffffffff

// wait waits for an event, not longer than limit.
func (s *session) wait(limit time.Duration) notice {
	s.asking("nvmlEventSetWait", nil)
	data, ret := s.set.Wait(uint32(max(limit.Milliseconds(), 1)))
	switch {
	case ret == nvml.ERROR_TIMEOUT:
		return notice{}
	case isGone(ret):
		return notice{gone: answer(ret).Error()}
	case ret != nvml.SUCCESS:
		return notice{fault: "nvmlEventSetWait: " + answer(ret).Error()}
	}
	var from *card
	uuid := ""
	for _, c := range s.cards {
		if c.handle == data.Device {
			from, uuid = c, c.device.UUID
		}
	}
	switch data.EventType {
	case nvml.EventTypeXidCriticalError:
		event := &devices.Event{UUID: uuid, Kind: devices.EventXID, XID: data.EventData}
		// Before version 2 of the call the driver did not write the instance.
		if from != nil && from.device.MIG.Enabled && data.GpuInstanceId != noInstance && s.source.has("nvmlEventSetWait_v2") {
			event.Detail = fmt.Sprintf("in GPU instance %d", data.GpuInstanceId)
		}
		return notice{event: event}
	case nvml.EventTypeDoubleBitEccError:
		return notice{event: &devices.Event{UUID: uuid, Kind: devices.EventECCUncorrected, Detail: "double-bit error"}, card: from}
	}
	return notice{}
}

// read asks one card for everything that a poll wants to know.
func (s *session) read(c *card) reading {
	r := reading{uuid: c.device.UUID, faults: map[string]string{}}
	c.lost, s.seen.gone, s.seen.warnings = nvml.SUCCESS, nvml.SUCCESS, nil
	if s.seen.present(c) || c.lost == nvml.SUCCESS && s.seen.gone == nvml.SUCCESS {
		s.readErrors(c, &r)
		if mig, doubtful := s.seen.partitions(c); !doubtful {
			r.mig, c.device.MIG = &mig, mig
		} else {
			r.faults["partitions"] = "what was known stays: " + strings.Join(s.seen.warnings, "; ")
		}
		s.seen.warnings = nil
		if r.running = s.seen.running(c); len(s.seen.warnings) > 0 {
			r.faults["processes"] = strings.Join(s.seen.warnings, "; ")
		}
		s.seen.warnings = nil
		if r.use = s.seen.use(c); len(s.seen.warnings) > 0 {
			r.faults["use"] = strings.Join(s.seen.warnings, "; ")
		}
	}
	if c.lost != nvml.SUCCESS {
		r.lost = answer(c.lost).Error()
	}
	if s.seen.gone != nvml.SUCCESS {
		r.gone = answer(s.seen.gone).Error()
	}
	return r
}

// readErrors asks for error counters and the repairs that wait for a reset.
func (s *session) readErrors(c *card, r *reading) {
	can := func(call string) bool {
		if s.seen.lacks(call) {
			return false
		}
		s.asking(call, c)
		return true
	}
	answered := func(question string, ret nvml.Return) bool {
		switch {
		case s.seen.ok(c, ret):
			return true
		case !isUnsupported(ret) && !isLost(ret) && !isGone(ret):
			r.faults[question] = answer(ret).Error()
		}
		return false
	}
	const ecc = "nvmlDeviceGetTotalEccErrors"
	if can(ecc) {
		if n, ret := c.handle.GetTotalEccErrors(nvml.MEMORY_ERROR_TYPE_UNCORRECTED, nvml.VOLATILE_ECC); answered("uncorrected ECC errors: "+ecc, ret) {
			r.uncorrected = &n
		}
		if n, ret := c.handle.GetTotalEccErrors(nvml.MEMORY_ERROR_TYPE_CORRECTED, nvml.VOLATILE_ECC); answered("corrected ECC errors: "+ecc, ret) {
			r.corrected = &n
		}
	}
	const retired = "nvmlDeviceGetRetiredPagesPendingStatus"
	if can(retired) {
		if pending, ret := c.handle.GetRetiredPagesPendingStatus(); answered("retired pages: "+retired, ret) {
			r.pagesPending = flagOf(pending == nvml.FEATURE_ENABLED)
		}
	}
	const rows = "nvmlDeviceGetRemappedRows"
	if can(rows) {
		if corrected, uncorrected, pending, failed, ret := c.handle.GetRemappedRows(); answered("remapped rows: "+rows, ret) {
			r.rows = uint64(corrected) + uint64(uncorrected)
			r.rowsPending, r.rowsFailed = flagOf(pending), flagOf(failed)
		}
	}
}

// explain is the reason in an event that the driver is gone.
func explain(err error) string {
	if errors.Is(err, answer(nvml.ERROR_LIB_RM_VERSION_MISMATCH)) {
		return err.Error() + "; this process keeps the library it has: restart it once the new driver is loaded"
	}
	return err.Error()
}
