package projector

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/musterd/muster/coordinator/history"
	"github.com/musterd/muster/coordinator/history/spool"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/resource"
)

// Warehouse is a database with the history. Its methods may be called from any
// goroutine, and block no longer than ctx.
type Warehouse interface {
	// Position is that of the last batch.
	Position(ctx context.Context) (history.Position, error)
	// Write adds a batch and moves the position, both or neither. A batch that does not
	// follow the position is a *history.PositionError.
	Write(ctx context.Context, b history.Batch) error
	// Repair writes parts of a repair, one after the other, whatever the position is.
	Repair(ctx context.Context, parts iter.Seq[history.Batch]) error
	// Revert marks the rows above a revision as reverted, and sets the position to it.
	Revert(ctx context.Context, to resource.Revision) error
	// Read returns the rows under the keys of a batch, and all rows without an end.
	Read(ctx context.Context, of history.Batch) (history.Batch, error)
	// LastCounted returns, of each slot of the members of grants without an end, the last
	// slice that has a counter: its key, its end, its measured use and the counter.
	LastCounted(ctx context.Context) ([]history.Slice, error)
}

// Config is a projector's. Durations of 0 are the defaults.
type Config struct {
	// Name is the coordinator's, and Cluster that of its cluster.
	Name, Cluster string
	Store         store.Store
	Warehouse     Warehouse
	// SpoolDir is the folder of the spool, and SpoolBytes its greatest size; 0 is
	// spool.DefaultMost.
	SpoolDir   string
	SpoolBytes int64
	// SpoolWait is how long a new projector waits for the spool of another coordinator
	// where the store does not have those changes any more; default 1 h.
	SpoolWait time.Duration
	// LeaseTTL is that of the election; default 15 s.
	LeaseTTL time.Duration
	Logger   *slog.Logger
	Metrics  prometheus.Registerer // nil: nobody reads them
}

// Times of a projector.
const (
	defaultSpoolWait = time.Hour
	defaultLeaseTTL  = 15 * time.Second

	flushEvery    = 200 * time.Millisecond // at least, while there are rows
	idleEvery     = 10 * time.Second       // the position moves where nothing makes rows
	positionEvery = 2 * time.Second        // the store's key of it
	writeTimeout  = 30 * time.Second
	slowWrite     = time.Second // after that rows go to the spool
	startTimeout  = 20 * time.Second
	firstRetry    = time.Second // doubling to lastRetry
	lastRetry     = 30 * time.Second
	closeTimeout  = 3 * time.Second
)

// Rows of a batch.
const (
	enoughRows  = 2000   // a batch is written without a wait
	mostPending = 20_000 // the projector takes no more changes
)

// Projector is one coordinator's part in the history. One goroutine (Run) owns all of
// it; status is what others read.
type Projector struct {
	config  Config
	log     *slog.Logger
	metrics *metrics

	spool    *spool.Spool
	term     *term // nil while another is elected
	inflight *flight
	written  chan error // of the flight
	retryAt  time.Time  // the database is left alone before
	retry    time.Duration
	// position is the database's as far as it is known; reached is the mark of the last
	// batch that is durable anywhere.
	position resource.Revision
	known    bool
	away     bool // the last call of the database failed
	mark     string
	stored   stored
	rebuilt  resource.Revision // of the newest rebuild that was heard of

	mu     sync.Mutex
	status Status
}

// flight is a batch on its way to the database.
type flight struct {
	batch   history.Batch
	since   time.Time
	spooled bool // the spool has it too
}

// stored is the key of the position as the store has it.
type stored struct {
	position record.HistoryPosition
	modRev   resource.Revision
	at       time.Time // of the last write of this projector
	since    time.Time // since when position is as it is, as this projector has seen
}

// New returns a projector.
func New(c Config) *Projector {
	c.SpoolWait, c.LeaseTTL = cmp.Or(c.SpoolWait, defaultSpoolWait), cmp.Or(c.LeaseTTL, defaultLeaseTTL)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return &Projector{config: c, log: c.Logger, metrics: newMetrics(c.Metrics), written: make(chan error, 1), status: Status{Phase: Waiting}}
}

// Run campaigns, projects while it is elected, and drains its spool in any case, until
// ctx ends. An error is one of the spool's folder.
func (p *Projector) Run(ctx context.Context) (err error) {
	s, lost, err := spool.Open(p.config.SpoolDir, p.config.SpoolBytes)
	if err != nil {
		return err
	}
	if lost > 0 {
		p.log.Warn("history_spool_torn", "bytes_lost", lost)
	}
	p.spool = s
	defer func() { err = errors.Join(err, p.spool.Close()) }()
	elected := make(chan *store.Leadership)
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	wg.Go(func() { p.campaign(ctx, elected) })
	tick := time.NewTicker(flushEvery)
	defer tick.Stop()
	for {
		var over <-chan struct{}
		if p.term != nil {
			over = p.term.office.Done()
		}
		select {
		case <-ctx.Done():
			p.close()
			return nil
		case office := <-elected:
			p.log.Info("history_projector_elected", "epoch", int64(office.Epoch))
			p.term = &term{office: office}
		case <-over:
			p.log.Warn("history_projector_deposed", "error", p.term.office.Err())
			p.endTerm()
		case b, open := <-p.term.intake(mostPending):
			p.follow(b, open)
			p.drainChanges()
		case err := <-p.written:
			p.land(ctx, err)
		case <-tick.C:
			p.act(ctx)
		}
		p.advance(ctx)
	}
}

// campaign sends each term of office, one after the other.
func (p *Projector) campaign(ctx context.Context, elected chan<- *store.Leadership) {
	candidate := store.NewCandidateFor(p.config.Store, record.ProjectorPrefix, record.LeaderAddress{ID: p.config.Name}, p.config.LeaseTTL)
	for ctx.Err() == nil {
		office, err := candidate.Campaign(ctx)
		if err != nil {
			if ctx.Err() == nil {
				p.log.Warn("history_campaign_failed", "error", err)
			}
			select {
			case <-ctx.Done():
			case <-time.After(firstRetry):
			}
			continue
		}
		select {
		case elected <- office:
			select {
			case <-office.Done():
			case <-ctx.Done():
			}
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
			if err := office.Resign(last); err != nil {
				p.log.Warn("history_projector_not_resigned", "error", err)
			}
			cancel()
		}
	}
}

// close has what was taken be durable, as far as that takes no time.
func (p *Projector) close() {
	if p.inflight != nil {
		select {
		case err := <-p.written:
			p.land(context.Background(), err)
		case <-time.After(closeTimeout):
			p.spoolFlight()
		}
	}
	p.spill()
	p.endTerm()
}

// endTerm forgets the term. Rows that are not durable are made again by the next one.
func (p *Projector) endTerm() {
	if p.term != nil {
		p.term.stop()
	}
	p.term = nil
}

// act does what is due.
func (p *Projector) act(ctx context.Context) {
	now := time.Now()
	if t := p.term; t != nil && t.narrator == nil && !now.Before(t.retryAt) {
		p.begin(ctx)
	}
	if now.Sub(p.stored.at) >= positionEvery || p.ownsDrained() {
		p.storePosition(ctx)
	}
	// A term that looks for its place asks for the position by itself.
	if looks := p.term != nil && p.term.narrator == nil; !looks && p.spool.Len() > 0 && !p.known && !now.Before(p.retryAt) {
		p.trim(ctx)
	}
	p.tell(now)
}

// trim drops the batches of a spool that the database has, or that do not follow it any
// more: another projector went on without them.
func (p *Projector) trim(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	at, err := p.config.Warehouse.Position(ctx)
	if err != nil {
		p.fail(err)
		return
	}
	p.recover()
	p.take(at)
}

// take takes the database's position over, and brings the spool in line.
func (p *Projector) take(at history.Position) {
	p.position, p.known = at.Revision, true
	p.must(p.spool.DropUpto(at.Revision))
	if after, _ := p.spool.Reach(); p.spool.Len() > 0 && after > at.Revision {
		p.log.Warn("history_spool_dropped", "history_at", int64(at.Revision), "spool_after", int64(after))
		p.must(p.spool.Clear())
		if p.term != nil && p.term.narrator != nil { // its rows follow those of the spool
			p.restart()
		}
	}
}

// must logs an error of the spool's folder: what it concerns is read again at the next
// start.
func (p *Projector) must(err error) {
	if err != nil {
		p.log.Error("history_spool_failed", "error", err)
		p.metrics.errors.Inc()
	}
}

// fail notes that the database does not answer.
func (p *Projector) fail(err error) {
	p.away = true
	p.retry = min(max(2*p.retry, firstRetry), lastRetry)
	p.retryAt = time.Now().Add(p.retry)
	p.metrics.errors.Inc()
	p.log.Warn("history_database_failed", "error", err, "retry_in", p.retry)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.status.Away == "" {
		p.status.AwaySince = time.Now()
	}
	p.status.Away = fmt.Sprint(err)
}

// recover notes that the database answers.
func (p *Projector) recover() {
	p.away, p.retry, p.retryAt = false, 0, time.Time{}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.status.Away, p.status.AwaySince = "", time.Time{}
}
