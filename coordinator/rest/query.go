package rest

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/service"
)

// MaxWait bounds ?wait=.
const MaxWait = service.MaxWait

// query holds the parameters an endpoint was given, after checking.
type query struct {
	wait time.Duration
	service.Selection
	dryRun bool
	// grace and propagation are the options of a deletion; nil and "" if absent.
	grace       *int64
	propagation string
	force       bool
	everyNode   bool
	// allowUnknown keeps misspelt names of resources in documents of quota.
	allowUnknown bool
	watch        bool
	version      string // resourceVersion, as it was sent
	period       time.Duration
	audit        *service.AuditQuery // takes all parameters; nil for other endpoints
	logs         *service.LogQuery   // likewise
	past         *service.PastQuery  // likewise
}

// AllowUnknownResources is a parameter of changes of quota.
const AllowUnknownResources = "allowUnknownResources"

// GetParameters are those of a get of one object.
var GetParameters = []string{"resourceVersion"}

// reading makes that the read shows the state that resourceVersion asks for.
func (c *call) reading(known ...string) *api.Status {
	if status := c.parameters(append(known, GetParameters...)...); status != nil {
		return status
	}
	c.r = c.r.WithContext(service.WithAsOf(c.ctx(), c.query.AsOf()))
	return nil
}

// ListParameters are those of a list of objects.
var ListParameters = []string{"labelSelector", "fieldSelector", "limit", "continue", "watch", "resourceVersion"}

// parameters reads the query string; names not in known are refused.
func (c *call) parameters(known ...string) *api.Status {
	if c.r.URL.RawQuery == "" {
		return nil
	}
	values, err := url.ParseQuery(c.r.URL.RawQuery)
	if err != nil {
		return api.Errorf(http.StatusBadRequest, "query %q: %v", clip(c.r.URL.RawQuery), err)
	}
	names := make([]string, 0, len(values))
	for name := range values {
		names = append(names, name)
	}
	slices.Sort(names)
	if slices.Contains(known, "watch") && values.Has("watch") {
		if status := c.query.set("watch", values.Get("watch")); status != nil {
			return status
		}
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return api.Errorf(http.StatusBadRequest, "unknown query parameter %q: %s %s takes %s",
				clip(name), c.r.Method, clip(c.r.URL.Path), list(known))
		}
		if len(values[name]) > 1 {
			return api.Errorf(http.StatusBadRequest, "query parameter %q is given %d times", name, len(values[name]))
		}
		if status := c.query.set(name, values[name][0]); status != nil {
			return status
		}
	}
	return nil
}

func list(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// set checks one parameter.
func (q *query) set(name, value string) *api.Status {
	var err error
	if q.audit != nil {
		if err = q.audit.Set(name, value); err != nil {
			return badParameter(name, value, err)
		}
		return nil
	}
	if q.past != nil {
		if err = q.past.Set(name, value); err != nil {
			return badParameter(name, value, err)
		}
		return nil
	}
	if q.logs != nil {
		if err = q.logs.Set(name, value); err != nil {
			return badParameter(name, value, err)
		}
		return nil
	}
	switch name {
	case "wait":
		q.wait, err = parseWait(value)
	case "labelSelector", "fieldSelector", "limit", "continue":
		err = q.Select(name, value)
	case "dryRun", "force":
		flag := &q.dryRun
		if name == "force" {
			flag = &q.force
		}
		if *flag = name == "dryRun" && value == "All"; *flag { // as Kubernetes writes it
			return nil
		}
		if *flag, err = strconv.ParseBool(value); err != nil {
			err = fmt.Errorf("want true or false")
		}
	case "gracePeriodSeconds":
		seconds, parseErr := strconv.ParseInt(value, 10, 64)
		if q.grace = &seconds; parseErr != nil {
			err = fmt.Errorf("want a whole number of seconds")
		}
	case "propagationPolicy":
		q.propagation = value
	case AllowUnknownResources:
		if q.allowUnknown, err = strconv.ParseBool(value); err != nil {
			err = fmt.Errorf("want true or false")
		}
	case "nodes":
		if q.everyNode = value == "all"; !q.everyNode && value != "grouped" {
			err = fmt.Errorf("want grouped or all")
		}
	case "watch":
		if on, parseErr := strconv.ParseBool(value); parseErr != nil {
			err = fmt.Errorf("want true or false")
		} else {
			q.watch = on
		}
	case "period":
		var status *api.Status
		if q.period, status = api.ParsePeriod(value); status != nil {
			return status
		}
	case "resourceVersion":
		q.version = value
		err = q.Select(name, value)
	}
	if err != nil {
		return badParameter(name, value, err)
	}
	return nil
}

func badParameter(name, value string, err error) *api.Status {
	return api.Errorf(http.StatusBadRequest, "query parameter %s=%q: %v", name, clip(value), err)
}

func parseWait(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > MaxWait {
		return 0, fmt.Errorf("want a duration in 0s..%s, e.g. 10s", MaxWait)
	}
	return d, nil
}

// waiting prepares the connection for a wait: the server's write timeout would
// end it otherwise.
func (c *call) waiting() {
	if c.query.wait > 0 {
		// A test recorder has no deadline to set, hence the ignored error.
		_ = http.NewResponseController(c.w).SetWriteDeadline(time.Now().Add(c.query.wait + writeTimeout))
	}
}

// lasts allows so long for the answer to begin, and as long again for its sending.
func (c *call) lasts(within time.Duration) {
	c.within = within
	// A test recorder has no deadline to set, hence the ignored error.
	_ = http.NewResponseController(c.w).SetWriteDeadline(time.Now().Add(within))
}

// idempotencyKey reads the header of that name.
func (c *call) idempotencyKey() (string, *api.Status) {
	id := c.r.Header.Get("Idempotency-Key")
	return id, service.CheckKey(id)
}
