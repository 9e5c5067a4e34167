//go:build cgo && linux

package nvml

import (
	"errors"
	"fmt"
	"strings"

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
	kept    bool          // a call that hangs has the set, so it is not freed
}

// connect starts the library and looks at all cards. An error means that the
// driver does not answer, or has more cards than can be used.
// Nothing is asked about the cards of skip.
func (s *session) connect(known map[string]string, skip skips, p *patience) (sighting, error) {
	if !s.started {
		s.asking("nvmlInit_v2", nil)
		if err := s.source.start(); err != nil {
			return sighting{}, err
		}
		s.started = true
	}
	s.seen = s.source.discovery(known, s.asking)
	s.seen.skip, s.seen.patience = skip, p
	seen, cards, err := s.seen.run()
	if err != nil {
		s.disconnect()
		return sighting{}, err
	}
	s.cards = cards
	return seen, nil
}

// disconnect shuts the library down, so that the driver can be unloaded, but not while
// a call hangs. The answer does not matter: without a driver it has nothing to shut
// down.
func (s *session) disconnect() {
	s.deafen()
	s.cards = nil
	if s.started && s.source.stuck.Load() == 0 {
		s.asking("nvmlShutdown", nil)
		s.started = false
		_ = s.source.stop()
	}
}

// deafen gives up the event set.
func (s *session) deafen() {
	if s.set != nil && !s.kept {
		s.asking("nvmlEventSetFree", nil)
		_ = s.set.Free() // a set that cannot be freed goes with the library
	}
	s.set, s.kept = nil, false
}

// beginListening makes an event set, and returns the error that kept it from that.
// Drivers older than event sets are passed over in silence.
func (s *session) beginListening() (faults []string) {
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
	return nil
}

// register has the driver record XIDs and double-bit errors of a card from now on, and
// returns the error that kept it from that. Cards without events are passed over in
// silence.
func register(d *discovery, c *card, set nvml.EventSet) (fault string) {
	switch ret := d.register(c, set); {
	case ret == nvml.SUCCESS, isUnsupported(ret), isLost(ret), isGone(ret):
		return ""
	default:
		return fmt.Sprintf("%v: XIDs are not heard: nvmlDeviceRegisterEvents: %v", c, answer(ret))
	}
}

// register asks for the events that the card has. Double-bit errors exist with
// ECC alone, and one type that is not supported refuses all.
func (d *discovery) register(c *card, set nvml.EventSet) nvml.Return {
	const wanted = nvml.EventTypeXidCriticalError | nvml.EventTypeDoubleBitEccError
	types := uint64(wanted)
	if d.has("nvmlDeviceGetSupportedEventTypes") {
		d.asking("nvmlDeviceGetSupportedEventTypes", c)
		if supported, ret := c.handle.GetSupportedEventTypes(); ret == nvml.SUCCESS {
			types &= supported
		}
	}
	if types == 0 {
		return nvml.ERROR_NOT_SUPPORTED
	}
	d.asking("nvmlDeviceRegisterEvents", c)
	ret := c.handle.RegisterEvents(types, set)
	if ret == nvml.ERROR_NOT_SUPPORTED && types == wanted {
		ret = c.handle.RegisterEvents(nvml.EventTypeXidCriticalError, set)
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

// occurrence is the answer of one nvmlEventSetWait.
type occurrence struct {
	data nvml.EventData
	ret  nvml.Return
}

// judge is the meaning of the answer of a wait for an event.
func (s *session) judge(o occurrence) notice {
	data, ret := o.data, o.ret
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

// readCard asks one card for everything that a poll wants to know. The discovery and
// the card are its own.
func readCard(d *discovery, c *card) reading {
	r := reading{uuid: c.device.UUID, faults: map[string]string{}}
	c.lost = nvml.SUCCESS
	if d.present(c) || c.lost == nvml.SUCCESS && d.gone == nvml.SUCCESS {
		d.readErrors(c, &r)
		if mig, doubtful := d.partitions(c); !doubtful {
			r.mig, c.device.MIG = &mig, mig
		} else {
			r.faults["partitions"] = "what was known stays: " + strings.Join(d.warnings, "; ")
		}
		d.warnings = nil
		if r.running = d.running(c); len(d.warnings) > 0 {
			r.faults["processes"] = strings.Join(d.warnings, "; ")
		}
		d.warnings = nil
		if r.use = d.use(c); len(d.warnings) > 0 {
			r.faults["use"] = strings.Join(d.warnings, "; ")
		}
	}
	if c.lost != nvml.SUCCESS {
		r.lost = answer(c.lost).Error()
	}
	if d.gone != nvml.SUCCESS {
		r.gone = answer(d.gone).Error()
	}
	return r
}

// readErrors asks for error counters and the repairs that wait for a reset.
func (d *discovery) readErrors(c *card, r *reading) {
	can := func(call string) bool {
		if d.lacks(call) {
			return false
		}
		d.asking(call, c)
		return true
	}
	answered := func(question string, ret nvml.Return) bool {
		switch {
		case d.ok(c, ret):
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
