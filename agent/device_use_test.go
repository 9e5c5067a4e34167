package agent_test

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/musterd/muster/agent"
	"github.com/musterd/muster/devices"
)

func TestTheUseOfDevicesIsInHeartbeatsAndMetrics(t *testing.T) {
	w := newWatchedRig(t)
	driver := w.tune
	w.tune = func(c *agent.Config, d *agent.Deps) {
		driver(c, d)
		c.Heartbeat, c.MetricsListen, d.Metrics = 20*time.Millisecond, loopback, prometheus.NewRegistry()
	}
	w.start()
	list := w.agent.Host().Inventory().Devices
	w.change <- devices.Change{Use: []devices.Use{
		{UUID: list[0].UUID, Percent: 37, Memory: 1 << 30},
		{UUID: list[1].UUID, Percent: devices.UnknownUse, Memory: 0},
		{UUID: "GPU-of-another-host", Percent: 1, Memory: 1},
	}}
	w.settle()
	eventually(t, "the use in a heartbeat", func() bool {
		told := (<-w.store.beats).GetCurrentUsage().GetDevices()
		return len(told) == 2 && told[0].GetUuid() == list[0].UUID && told[0].GetPercent() == 37 && told[0].GetMemoryBytes() == 1<<30 &&
			told[1].GetUuid() == list[1].UUID && told[1].Percent == nil && told[1].MemoryBytes != nil
	})
	text := fetch(t, "http://"+w.agent.MetricsAddress()+"/metrics")
	for _, want := range []string{
		`muster_agent_device_use_ratio{device="0",model="` + list[0].Model + `",node="n1",uuid="` + list[0].UUID + `"} 0.37`,
		`muster_agent_device_memory_used_bytes{device="1",model="` + list[1].Model + `",node="n1",uuid="` + list[1].UUID + `"} 0`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in the metrics:\n%s", want, text)
		}
	}
	if strings.Contains(text, `muster_agent_device_use_ratio{device="1"`) || strings.Contains(text, "another-host") {
		t.Error("the metrics have a value that nobody measured")
	}
	w.tell(0, devices.Event{Kind: devices.EventLost})
	w.settle()
	eventually(t, "a heartbeat without the lost device", func() bool {
		told := (<-w.store.beats).GetCurrentUsage().GetDevices()
		return len(told) == 1 && told[0].GetUuid() == list[1].UUID
	})
}
