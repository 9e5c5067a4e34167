/* Reserve and commit for gangs: the agents' reservations, the transaction records in the store, the leader's quota sum
 * (docs/PROTOCOL.md). Invariants have its numbers.
 *
 * Two agents with one device each; a gang needs both.
 *   CONF 1  two gangs compete for the devices; quota for one; two epochs, two OS crashes
 *   CONF 2  two gangs on disjoint devices of the same two agents: only the quota keeps them apart; three
 *           epochs, one OS crash
 *   CONF 3  gang 0 is the victim; gang 1 and a one-node transaction, each of which waits for its devices or takes them
 *           when they are free; quota for one; one OS crash
 *   CONF 4  as 3 with two epochs instead of the OS crash
 *   CONF 5  victim gang and preemptor gang alone; two epochs, one OS crash
 *   CONF 6  as 1 with one epoch, and an OS crash may lose synced tombstones: a grant that had ended is HELD again (ADR 7)
 *   CONF 7  as 1 with one fault, and instead of an OS crash it may wipe a disk while the processes on the devices run on
 *   CONF 8  as 5, and the victim's priority may be raised above the preemptor's
 *   CONF 9  as 1 with one OS crash, and ABORTED records are collected
 *   CONF 10 as 2 with two epochs and no OS crash; quota for two, which a leader lowers to one
 *   CONF 11 as 1 with one OS crash; agents refuse what leaders of older epochs say
 *   CONF 12 as 1 with one OS crash; tombstones are dropped, and agents register again and apply what they had read before
 *   CONF 13 as 1 with one OS crash; a node may be fenced as dead while its agent lives or not, RELEASED records are collected
 *   CONF 14 as 7, and what a grant has started may outlive it
 *   CONF 15 as 13; gang 0 may lose its member on agent 1, and transaction 1 is of the unit that replaces it there (ADR 110)
 *   CONF 16 two transactions of one member each, of a group that starts together (ADR 55); two epochs, one OS crash
 *   CONF 17 as 15, and transaction 1 is of another unit, on a device of its own of agent 1: only the quota keeps it apart; no OS crash
 * NC and CRASHES may be given to make a configuration larger.
 *
 * Messages are over-approximated. A message that could have been sent may be delivered at any later time, any number of
 * times, in any order, or never; so a vote is a bit that never goes away, with the incarnation that cast it, and a Txn
 * once sent may land at any later time. An absent record may be fenced by anyone at any moment: TTL, newer epoch, giving up.
 * The same holds for Reserve: it may reach an agent at any time, also after the decision.
 *
 * Agents. At an OS crash each of RESERVED, WAITING, HELD and EVICT is lost or is not. TOMB is synced before Freed is sent,
 * so it is not lost and also stands for "Freed may reach a coordinator"; where tombstones can be lost (CONF 6 and 7) Freed
 * is a bit that never goes away. The tombstone of an abort is dropped at once.
 * A process crash loses nothing and an agent has no volatile state here, so it is no step. After an OS crash: DOWN
 * (entries are being lost), BOOT (new incarnation, not registered), REGD (registered, records not read), UP. Only an
 * agent that is UP takes messages. It keeps what it has read as COMMITTED and its tombstones, and drops all else.
 * A wiped disk leads to BOOT at once: the boot goes on, and with it what runs on the devices (CONF 7: a process runs
 * from HELD until it is stopped, which is before TOMB is written). Streams end with the process, so no Reserve of a
 * transaction that is RELEASED reaches the process after it.
 *
 * Coordinators. Incarnation c has epoch c. All of them act until the end, those with an old epoch too. Each keeps its
 * own set of charged transactions (its sum); a Txn counts from its sending until the record is read as decided.
 * Only commit compares the epoch here; release, evict and fence are allowed to anyone, which is weaker than the protocol.
 * So is that agents obey leaders of any epoch, but for CONF 11: there what a leader says is a step beside that of the
 * agent which reads the record itself.
 *
 * Limits (CONF 10). What holds when a limit is lowered: a commit obeys the limit that stood when its leader was elected, and
 * the lowered one if it was sent after the operator was told. One that was under way by then may land, and ends nothing.
 *
 * Fences (CONF 13). A fence and a registration both write the identity, so incarnations count registrations there, and an
 * agent that lives votes anew after its own. Only the leader that made an attempt commits it, in a Txn that lands once, so a
 * collected RELEASED record is not made again.
 *
 * Losses (CONF 15). The gang charges 2, one for each member. A loss may land at any time while its compares hold, by anybody. For the
 * agent of the lost member the record counts as RELEASED from then on. The replacement asks for the place of the lost member, so the
 * agent that comes back has to stop the one before it promises the other.
 *
 * Not here: what README.md lists. MUTANT selects a mutation (rows.go says what each must break), WITNESS asks whether
 * the far end can be reached.
 */
#ifndef MUTANT
#define MUTANT 0
#endif
#ifndef CONF
#define CONF 1
#endif
#define IS(n) (MUTANT==n)
#define NO_INCARNATION_COMPARE      1
#define PROMISE_BEFORE_REGISTERING  2
#define NO_EPOCH_COMPARE            3
#define SUM_BEFORE_ELECTION         4
#define UNKNOWN_NOT_CHARGED         5
#define ABSENT_IS_AN_OUTCOME        6
#define TTL_FREES_WITHOUT_FENCE     7
#define PARTIAL_VOTE                8
#define ACK_BEFORE_COMMIT           9
#define END_BEFORE_FREED            10
#define RELEASE_WITHOUT_STATE       11
#define REJOIN_WITHOUT_READING      12
#define EVICT_BEFORE_ALL_WAIT       13
#define WAITING_NOT_EXCLUSIVE       14
#define EVICT_FOR_DECIDED           15
#define EVICT_WITHOUT_INCARNATIONS  16
#define NO_ABSENT_COMPARE           17
#define READ_BEFORE_REGISTERING     18
#define SWAP_BEFORE_FREED           19
#define YES_FOR_WAITING             20
#define SWAP_WITHOUT_VICTIM_STATE   21
#define PROMOTE_LATER               22
#define SWAP_WITHOUT_EPOCH          23
#define LOSS_KEEPS_INCARNATION      24
#define REVIVED_STAYS               25
#define BURY_WHAT_RUNS              26
#define START_BEFORE_COMMITTED      27
#define EVICT_WITHOUT_PRIORITY      28
#define COLLECT_IN_DOUBT            29
#define COLLECT_WITHOUT_EPOCH       30
#define ATTEMPT_REUSED              31
#define EVICT_PEER                  36
#define LIMIT_BEFORE_ELECTION       37
#define LIMIT_WITHOUT_EPOCH         38
#define LIMIT_TOLD_BEFORE_KNOWN     39
#define NO_EPOCH_AT_AGENT           40
#define ADOPT_STALE                 41
#define REPEATED_RESERVE            42
#define END_WITHOUT_FENCE_COMPARE   43
#define COLLECT_UNHEARD             44
#define ORPHAN_HANDED_OUT           45
#define LOSS_WITHOUT_FENCE_COMPARE  51
#define LOSS_WITHOUT_STATE          52
#define LOSS_UNCHARGED_EARLY        53
#define MEND_WITHOUT_PARENT         54
#define COLLECT_LOST_UNHEARD        55
#define GROUP_CUT                   56
#define GROUP_BELOW_MINIMUM         57

#if CONF == 3 || CONF == 4
#define NT 3
#else
#define NT 2
#endif
#ifndef NC
#if CONF == 3 || CONF == 6
#define NC 1
#elif CONF == 2
#define NC 3
#else
#define NC 2
#endif
#endif
#ifndef CRASHES
#if CONF == 4 || CONF == 10 || CONF == 17
#define CRASHES 0
#elif CONF == 1 || CONF == 6
#define CRASHES 2
#else
#define CRASHES 1
#endif
#endif
#define CLASH   (CONF!=2 && CONF!=10 && CONF!=17) /* the transactions want the same devices */
#define PREEMPT (CONF>=3 && CONF<=5 || CONF==8) /* gang 0 is a victim, the others are preemptors */
#define ACKS    (CONF<=2)
#define LOSES   (CONF==6)       /* an OS crash loses tombstones */
#define WIPES   (CONF==7 || CONF==14) /* a disk may be wiped, processes are seen */
#define BOOSTS  (CONF==8)
#define COLLECTS (CONF==9)
#define LIMITS  (CONF==10)
#define EPOCHS  (CONF==11)
#define FORGETS (CONF==12)
#define FENCES  (CONF==13 || CONF==15 || CONF==17)
#define HEALS   (CONF==15 || CONF==17) /* gang 0 may lose a member */
#define MENDS   (CONF==15)      /* transaction 1 is of the unit that replaces the member */
#define GROUPS  (CONF==16)
#define STRAYS  (CONF==14)
#define REMEMBERS (LOSES || WIPES || FORGETS || FENCES) /* that Freed was said, beyond the tombstone */
#define LIMIT (1+LIMITS+HEALS+GROUPS) /* a transaction charges 1, a gang that may lose a member 2 */
#ifndef FENCINGS
#define FENCINGS 1
#endif
#define ONE(t)  (NT==3 && (t)==2) /* a transaction of one member, on agent 0 */
#if HEALS
#define ON(a,t) ((t)==0 || (a)==1)
#elif GROUPS
#define ON(a,t) ((a)==(t))
#else
#define ON(a,t) (!ONE(t) || (a)==0)
#endif

mtype = { ABSENT, ABORTED, COMMITTED, EVICTING, RELEASING, RELEASED };  /* record */
mtype = { FREE, WAITING, RESERVED, HELD, EVICT, TOMB };                 /* agent, per transaction */
mtype = { UP, DOWN, BOOT, REGD };                                       /* agent */

/* Store. */
mtype rec[NT] = ABSENT;
byte epoch;                     /* the elected coordinator */
byte nid[2];                    /* registered incarnation */
/* Agents; index a*NT+t. */
mtype loc[2*NT] = FREE;
mtype ph[2] = UP;
byte gen[2];                    /* own incarnation */
byte crashes;
#if WIPES
bool busy[2*NT];                /* a process of the transaction is on the device */
#endif
/* Messages: who said Yes or Waiting, one bit per incarnation. */
byte yes[2*NT];
byte wok[2*NT];
#if REMEMBERS
bool freed[2*NT];               /* Freed was sent */
#endif
/* Coordinators; index c*NT+t. */
bool loaded[NC];
bool charged[NC*NT];
bool sent[NC*NT];               /* commit Txn */
bool swap[NC*NT];               /* commit Txn that also releases the victim */
#if COLLECTS || FENCES
bool gone[NT];                  /* the attempt has ended and its record is collected */
#endif
#if BOOSTS
bool boosted;                   /* the victim's priority is the preemptor's now, which is not lower */
bool chosen;                    /* as a victim, as it stands */
#endif
#if LIMITS
byte limit = LIMIT;             /* in the store */
byte known[NC];                 /* to a coordinator; 0: not read yet */
bool lowers[NC];                /* Txn that lowers it, sent */
bool lowered[NC];               /* and landed */
bool told;                      /* to the operator, that it is lowered */
byte bound[NC] = LIMIT;         /* what stood at the election */
bool late[NC*NT];               /* the commit was sent after told */
#endif
#if EPOCHS
byte seen[2];                   /* highest epoch that the agent has heard of */
#endif
#if FORGETS
byte past[2];                   /* attempts below it may have ended at the agent */
bool reads[2];                  /* a registered agent has read the records again, and not applied them */
bool list[2*NT];                /* which were COMMITTED */
#endif
#if FENCES
byte fencings;
bool fenced[2];                 /* and confirmed dead */
bool buried[2];                 /* some coordinator has seen that */
#endif
#if HEALS
bool lost;                      /* the record says that the member on agent 1 is lost */
bool knows[NC];                 /* a coordinator counts it so */
#define LOST(a,t) ((a)==1 && (t)==0 && lost)
#else
#define LOST(a,t) false
#endif
#if GROUPS
bool joint[NC];                 /* the Txn that commits both was sent */
#endif
/* Observers. */
bool ack[NT];
byte released[NT];
#ifdef WITNESS
bool swapped;
#endif

#define L(a,t)     loc[(a)*NT+(t)]
#define OWNS(a,t)  (L(a,t)==RESERVED || L(a,t)==HELD || L(a,t)==EVICT)
#define BUSY(a,t)  (OWNS(a,t) || L(a,t)==WAITING)
#define U1(t)      (((t)+1)%NT)
#define U2(t)      (((t)+2)%NT) /* the same as t when there are two transactions */
#define LIVE(t)    (rec[t]==COMMITTED || rec[t]==EVICTING || rec[t]==RELEASING)
#define TAKEN(a,t) (CLASH && (BUSY(a,U1(t)) || (NT==3 && BUSY(a,U2(t)))))
#define CH(c,t)    charged[(c)*NT+(t)]
#if NT == 3
#define SUM(c)     (CH(c,0)+CH(c,1)+CH(c,2))
#define LIVESUM    (LIVE(0)+LIVE(1)+LIVE(2))
#else
#if HEALS
#define SUM(c)     (CH(c,0)*(2-knows[c])+CH(c,1))
#define LIVESUM    (LIVE(0)*(2-lost)+LIVE(1))
#else
#define SUM(c)     (CH(c,0)+CH(c,1))
#define LIVESUM    (LIVE(0)+LIVE(1))
#endif
#endif
#define BIT(m,g)   (((m)>>(g))&1)

#if FENCES
#define STANDS(a)  (!fenced[a])
#else
#define STANDS(a)  true
#endif
/* What the coordinator must have seen before it sends a commit, and what the Txn compares when it lands. */
#if IS(PARTIAL_VOTE)
#define VOTED(t)   (yes[t])
#define PRESENT(t) (BIT(yes[t],nid[0]))
#elif IS(NO_INCARNATION_COMPARE)
#define VOTED(t)   (yes[t] && (ONE(t) || yes[NT+t]))
#define PRESENT(t) VOTED(t)
#else
#define VOTED(t)   ((!ON(0,t) || yes[t]) && (!ON(1,t) || yes[NT+t]))
#define PRESENT(t) ((!ON(0,t) || BIT(yes[t],nid[0]) && STANDS(0)) && (!ON(1,t) || BIT(yes[NT+t],nid[1]) && STANDS(1)))
#endif
#if IS(NO_EPOCH_COMPARE)
#define LEADER(c) true
#else
#define LEADER(c) (epoch==(c))
#endif
#if IS(NO_ABSENT_COMPARE)
#define UNDECIDED(t) (rec[t]==ABSENT || rec[t]==ABORTED)
#else
#define UNDECIDED(t) (rec[t]==ABSENT)
#endif
#if REMEMBERS
#define FREEDBY(a,t) freed[(a)*NT+(t)]
#define say_freed(a,t) freed[(a)*NT+(t)]=true
#else
#define FREEDBY(a,t) (L(a,t)==TOMB)
#define say_freed(a,t) skip
#endif
#if FENCES
/* A node that is dead counts as freed; the Txn compares that it is, still. */
#define ENDED(a,t) (FREEDBY(a,t) || fenced[a])
#define GONE(a,t) (!ON(a,t) || LOST(a,t) || ENDED(a,t))
#define FREED(t) ((GONE(0,t) || IS(END_WITHOUT_FENCE_COMPARE) && buried[0]) && (GONE(1,t) || IS(END_WITHOUT_FENCE_COMPARE) && buried[1]))
#define ONCE(t) (!gone[t])
#else
#define GONE(a,t) true
#define FREED(t) ((!ON(0,t) || FREEDBY(0,t)) && (!ON(1,t) || FREEDBY(1,t)))
#define ONCE(t) true
#endif
#if WIPES
#define RUNS(a,t)  busy[(a)*NT+(t)]
#define starts(a,t) RUNS(a,t)=true
#define stops(a,t) RUNS(a,t)=false
#else
#define RUNS(a,t)  false
#define starts(a,t) skip
#define stops(a,t) skip
#endif
#if COLLECTS && !IS(ATTEMPT_REUSED) || FENCES
#define USABLE(t)  (!gone[t])
#else
#define USABLE(t)  true
#endif

/* What an eviction for preemptor t compares. */
#define WAITS(a,t) ((ONE(t) && a==1) || BIT(yes[(a)*NT+(t)]|wok[(a)*NT+(t)],nid[a]))
#define WAITED(a,t) ((ONE(t) && a==1) || yes[(a)*NT+(t)] || wok[(a)*NT+(t)])
#if IS(EVICT_BEFORE_ALL_WAIT)
#define MAYEVICT(t) (rec[t]==ABSENT && (WAITS(0,t) || WAITS(1,t)))
#elif IS(EVICT_FOR_DECIDED)
#define MAYEVICT(t) (WAITS(0,t) && WAITS(1,t))
#elif IS(EVICT_WITHOUT_INCARNATIONS)
#define MAYEVICT(t) (rec[t]==ABSENT && WAITED(0,t) && WAITED(1,t))
#else
#define MAYEVICT(t) (rec[t]==ABSENT && WAITS(0,t) && WAITS(1,t))
#endif
/* I7: an agent that had an OS crash and has not registered since counts as waiting; nobody can know better. */
#define WAITSNOW(a,t) ((ONE(t) && a==1) || L(a,t)==WAITING || L(a,t)==RESERVED || ph[a]==DOWN || ph[a]==BOOT)

/* I3 and I4: committed means that the member protects its device, or that it had an OS crash and has not yet read the
 * records, before which it promises nothing. */
#define PROTECTS(a,t) (OWNS(a,t) || ph[a]!=UP)

#if LIMITS
#define FAR (told && limit<LIMIT)
#elif EPOCHS
#define FAR (seen[0]==epoch && seen[1]==epoch)
#elif FORGETS
#define FAR (past[0]==NT && past[1]==NT)
#elif HEALS
#define FAR (lost && fencings==FENCINGS && gone[0] && !fenced[1])
#elif FENCES
#define FAR (fencings==FENCINGS && gone[0] && gone[1] && !fenced[0] && !fenced[1])
#else
#define FAR true
#endif
#define holds(i,e) assert((e) || 1000+i==0)     /* invariant i; the number is for check.sh */
#define check_at(a,t) \
  holds(1, !(CLASH && OWNS(a,t) && (OWNS(a,U1(t)) || (NT==3 && OWNS(a,U2(t)))))); \
  holds(3, !(rec[t]==COMMITTED && !PROTECTS(a,t) && !LOST(a,t))); \
  holds(3, !((L(a,t)==HELD || L(a,t)==EVICT) && (rec[t]==ABSENT || rec[t]==ABORTED))); \
  holds(3, !(L(a,t)==EVICT && rec[t]==COMMITTED && !LOST(a,t))); \
  holds(10, !(rec[t]==RELEASED && !FENCES && (!FREEDBY(a,t) || (RUNS(a,t) && !STRAYS)))); \
  holds(5, !(FORGETS && FREEDBY(a,t) && BUSY(a,t)));             /* freed once */ \
  holds(3, !(RUNS(a,t) && (rec[t]==ABSENT || rec[t]==ABORTED))); \
  holds(1, !(CLASH && RUNS(a,t) && OWNS(a,U1(t)))); \
  holds(7, !(L(a,t)==WAITING && NT==3 && OWNS(a,3-t)));          /* nominated to t, owned by another */ \
  holds(13, !(L(a,t)==WAITING && ph[a]==UP && !OWNS(a,0) && !IS(PROMOTE_LATER))) /* nothing waits for nothing */
#define check_tx(t) \
  if :: ON(0,t) -> check_at(0,t) :: else fi; if :: ON(1,t) -> check_at(1,t) :: else fi; \
  holds(4, !(ack[t] && (rec[t]==ABSENT || rec[t]==ABORTED))); \
  holds(5, released[t] <= 1)
inline check() {
#ifdef WITNESS                  /* the model can get there: both sides of each contest won, after the faults */
  holds(99, !(released[0]==1 && released[1]==1 && epoch==NC-1 && crashes==CRASHES && ph[0]==UP && ph[1]==UP && swapped==PREEMPT && FAR));
#endif
  holds(2, LIVESUM <= LIMIT);
#if GROUPS
  holds(17, (rec[0]==ABSENT || rec[0]==ABORTED) == (rec[1]==ABSENT || rec[1]==ABORTED)); /* both were committed, or none */
#endif
  check_tx(0); check_tx(1);
#if NT == 3
  check_tx(2);
#endif
}
/* I11: no other edge exists; a collected record is as one that never was. */
#define put(t,s) \
  holds(11, (HEALS && rec[t]==COMMITTED && s==COMMITTED) || (COLLECTS && rec[t]==ABORTED && s==ABSENT) || (FENCES && rec[t]==RELEASED && s==ABSENT) || (rec[t]==ABSENT && (s==COMMITTED || s==ABORTED)) || (rec[t]==COMMITTED && (s==EVICTING || s==RELEASING)) \
      || (rec[t]==EVICTING && (s==RELEASING || s==RELEASED)) || (rec[t]==RELEASING && s==RELEASED) || ((IS(RELEASE_WITHOUT_STATE) || IS(SWAP_WITHOUT_VICTIM_STATE)) && s==RELEASED)); \
  rec[t]=s

/* The victim leaves the device of a: in the same append the waiting transaction becomes reserved. */
#define promote(a,t) if :: IS(PROMOTE_LATER) -> skip :: else -> promotes(a,t) fi
#define promotes(a,t) \
  if :: PREEMPT && t==0 && NT==3 && L(a,NT-1)==WAITING -> L(a,NT-1)=RESERVED; yes[a*NT+NT-1]=yes[a*NT+NT-1]|(1<<gen[a]) \
     :: else -> if :: PREEMPT && t==0 && L(a,1)==WAITING -> L(a,1)=RESERVED; yes[a*NT+1]=yes[a*NT+1]|(1<<gen[a]) :: else fi fi

#if IS(PROMISE_BEFORE_REGISTERING)
#define PROMISES(a) (ph[a]==UP || ph[a]==BOOT)
#else
#define PROMISES(a) (ph[a]==UP)
#endif
#if IS(WAITING_NOT_EXCLUSIVE)
#define NOMINATED(a,t) false
#else
#define NOMINATED(a,t) (NT==3 && BUSY(a,3-(t)))
#endif

#if HEALS
#define CANRESERVE(a,t) (ON(a,t) && rec[t]!=RELEASED && !gone[t] && (t==0 && !LOST(a,t) || t==1 && (lost || !MENDS)))
#elif GROUPS
#define CANRESERVE(a,t) ON(a,t)
#elif FENCES
#define CANRESERVE(a,t) (rec[t]!=RELEASED && !gone[t])
#elif STRAYS
#define CANRESERVE(a,t) (rec[t]!=RELEASED && (!RUNS(a,U1(t)) || IS(ORPHAN_HANDED_OUT)))
#elif WIPES
#define CANRESERVE(a,t) (rec[t]!=RELEASED)
#elif FORGETS
#define CANRESERVE(a,t) (t>=past[a] || IS(REPEATED_RESERVE))
#else
#define CANRESERVE(a,t) true
#endif
#define bury(a,t) stops(a,t); tomb(a,t)
#define tomb(a,t) L(a,t)=TOMB; say_freed(a,t)
#define vote(a,t) yes[a*NT+t]=yes[a*NT+t]|(1<<gen[a])

#if EPOCHS
#define agent_unsees(a) \
  :: d_step { ph[a]==DOWN && seen[a]>0 -> seen[a]=0 }                                            /* lost at the OS crash */
/* What leader c says. A Reserve comes from nowhere else. */
#define SAYS(a,c)  (loaded[c] && c<=epoch && (c>=seen[a] || IS(NO_EPOCH_AT_AGENT)))
#define hears(a,c) holds(12, c>=seen[a]); if :: c>seen[a] -> seen[a]=c :: else fi
#define told_by(a,t,c) \
  :: d_step { SAYS(a,c) && ph[a]==UP && L(a,t)==FREE && !TAKEN(a,t) -> hears(a,c); L(a,t)=RESERVED; vote(a,t) } \
  :: d_step { SAYS(a,c) && ph[a]==UP && L(a,t)==RESERVED && LIVE(t) -> hears(a,c); L(a,t)=HELD } \
  :: d_step { SAYS(a,c) && ph[a]==UP && L(a,t)==RESERVED && rec[t]==ABORTED -> hears(a,c); L(a,t)=FREE } \
  :: d_step { SAYS(a,c) && ph[a]==UP && (L(a,t)==RESERVED || L(a,t)==HELD) && (rec[t]==RELEASING || rec[t]==EVICTING) -> hears(a,c); bury(a,t) }
#endif

#define agent_tx(a,t) \
  :: d_step { !EPOCHS && PROMISES(a) && L(a,t)==FREE && CANRESERVE(a,t) && !TAKEN(a,t) -> L(a,t)=RESERVED; vote(a,t); if :: IS(START_BEFORE_COMMITTED) -> starts(a,t) :: else fi } /* Reserve */ \
  :: d_step { ph[a]==UP && L(a,t)==RESERVED && (LIVE(t) || rec[t]==RELEASED) -> L(a,t)=HELD; starts(a,t) }         /* Commit */ \
  :: d_step { ph[a]==UP && (L(a,t)==RESERVED || L(a,t)==WAITING) && rec[t]==ABORTED -> L(a,t)=FREE; promote(a,t) } /* Abort */ \
  :: d_step { ph[a]==UP && L(a,t)!=TOMB && (ON(a,t) || !GROUPS && !HEALS) && (rec[t]==RELEASING || rec[t]==RELEASED || LOST(a,t)) -> bury(a,t); promote(a,t) } /* Release */ \
  :: d_step { ph[a]==DOWN && BUSY(a,t) -> L(a,t)=FREE }                                                          /* lost at the OS crash */ \
  :: d_step { LOSES && ph[a]==DOWN && L(a,t)==TOMB && !TAKEN(a,t) -> L(a,t)=HELD }                               /* what came after it is lost too */ \
  :: d_step { IS(TTL_FREES_WITHOUT_FENCE) && ph[a]==UP && L(a,t)==RESERVED && rec[t]==ABSENT -> L(a,t)=FREE; promote(a,t) }

#define agent_victim(a) \
  :: d_step { ph[a]==UP && (L(a,0)==RESERVED || L(a,0)==HELD) && (rec[0]==EVICTING || rec[0]==RELEASING) -> L(a,0)=EVICT } \
  :: d_step { IS(PROMOTE_LATER) && ph[a]==UP && !OWNS(a,0) && (L(a,1)==WAITING || L(a,NT-1)==WAITING) -> promotes(a,0) } \
  :: d_step { ph[a]==UP && (L(a,0)==EVICT || (L(a,0)==FREE && rec[0]==EVICTING)) -> bury(a,0); promote(a,0) }

#define agent_waits(a,t) \
  :: d_step { ph[a]==UP && L(a,t)==FREE && OWNS(a,0) && !NOMINATED(a,t) -> L(a,t)=WAITING; wok[a*NT+t]=wok[a*NT+t]|(1<<gen[a]); if :: IS(YES_FOR_WAITING) -> yes[a*NT+t]=yes[a*NT+t]|(1<<gen[a]) :: else fi }

#define agent_forgets(a,t) \
  :: d_step { ph[a]==UP && L(a,t)==TOMB && rec[t]==RELEASED -> L(a,t)=FREE; if :: past[a]<=t -> past[a]=t+1 :: else fi }
/* Who has registered before knows all that he has promised: he takes a list that may be old for no more than a hint. */
#define applies(a,t) \
  if :: list[a*NT+t] && (L(a,t)==RESERVED || (IS(ADOPT_STALE) && L(a,t)==FREE && !TAKEN(a,t))) -> L(a,t)=HELD :: else fi; list[a*NT+t]=false
#define agent_audits(a) \
  :: d_step { ph[a]==UP && !reads[a] -> reads[a]=true; list[a*NT]=(rec[0]==COMMITTED); list[a*NT+1]=(rec[1]==COMMITTED) } \
  :: d_step { ph[a]==UP && reads[a] -> applies(a,0); applies(a,1); reads[a]=false }

/* The identity says fenced and dead, right or wrong, until the agent registers. */
#define agent_fenced(a) \
  :: d_step { fencings<FENCINGS && nid[a]==gen[a] && (ph[a]==UP || ph[a]==DOWN || ph[a]==BOOT) -> fencings++; fenced[a]=true; buried[a]=true } \
  :: d_step { fenced[a] && ph[a]==UP -> gen[a]++; nid[a]=gen[a]; fenced[a]=false }
#define agent_revotes(a,t) \
  :: d_step { ph[a]==UP && L(a,t)==RESERVED && !BIT(yes[a*NT+t],gen[a]) -> vote(a,t) }

/* One range read: COMMITTED -> HELD, a tombstone stays, everything else is free. */
#if LOSES || FENCES
/* What is HELD and not listed any more stays, to be resolved; it gives way where a COMMITTED record has its device. */
#define adopt(a,t) \
  if :: L(a,t)==TOMB -> skip \
     :: else -> if :: rec[t]==COMMITTED && ON(a,t) && !LOST(a,t) && !(IS(REVIVED_STAYS) && L(a,U1(t))==HELD && rec[U1(t)]==RELEASED) -> L(a,t)=HELD \
                   :: else -> if :: L(a,t)==HELD && (rec[t]==RELEASED || LOST(a,t)) -> if :: rec[U1(t)]==COMMITTED && !IS(REVIVED_STAYS) -> bury(a,t) :: else fi \
                                 :: else -> L(a,t)=FREE fi fi fi
#elif WIPES
/* What the record ends is stopped first, where the operating system is still the one that it ran on. */
#define adopt(a,t) \
  if :: L(a,t)==TOMB -> skip \
     :: else -> if :: rec[t]==COMMITTED -> L(a,t)=HELD; starts(a,t) \
                   :: else -> if :: rec[t]==RELEASING -> if :: RUNS(a,t) && !IS(BURY_WHAT_RUNS) -> L(a,t)=HELD :: else -> L(a,t)=TOMB; say_freed(a,t) fi \
                                 :: else -> L(a,t)=FREE fi fi fi
#else
#define adopt(a,t) \
  if :: IS(REJOIN_WITHOUT_READING) || L(a,t)==TOMB -> skip \
     :: else -> if :: rec[t]==COMMITTED && (ON(a,t) || !GROUPS) -> L(a,t)=HELD \
                   :: else -> if :: IS(PROMISE_BEFORE_REGISTERING) && L(a,t)==RESERVED -> skip :: else -> L(a,t)=FREE fi fi fi
#endif
#if NT == 3
#define adopt_all(a) adopt(a,0); adopt(a,1); adopt(a,2)
#else
#define adopt_all(a) adopt(a,0); adopt(a,1)
#endif
#if IS(READ_BEFORE_REGISTERING)
#define FIRST(a) adopt_all(a)
#define SECOND(a) register(a)
#else
#define FIRST(a) register(a)
#define SECOND(a) adopt_all(a)
#endif
#if FORGETS
#define loses_reads(a) reads[a]=false; list[a*NT]=false; list[a*NT+1]=false
#else
#define loses_reads(a) skip
#endif
#if FENCES
#define register(a) nid[a]=gen[a]; fenced[a]=false
#else
#define register(a) nid[a]=gen[a]
#endif
#define agent(a) \
  :: d_step { crashes<CRASHES -> crashes++; gen[a]=gen[a]+!IS(LOSS_KEEPS_INCARNATION); stops(a,0); stops(a,1); loses_reads(a); ph[a]=DOWN } \
  :: d_step { WIPES && crashes<CRASHES -> crashes++; gen[a]++; L(a,0)=FREE; L(a,1)=FREE; ph[a]=BOOT } \
  :: d_step { ph[a]==DOWN -> ph[a]=BOOT } \
  :: d_step { ph[a]==BOOT -> FIRST(a); ph[a]=REGD } \
  :: d_step { ph[a]==REGD -> SECOND(a); ph[a]=UP }

#define store_tx(t) \
  :: d_step { rec[t]==ABSENT && ONCE(t) -> put(t,ABORTED) }                                           /* fence, by anyone */ \
  :: d_step { rec[t]==COMMITTED || rec[t]==EVICTING -> put(t,RELEASING) } \
  :: d_step { (rec[t]==RELEASING || (IS(RELEASE_WITHOUT_STATE) && rec[t]==RELEASED && released[t]<2)) && (FREED(t) || IS(END_BEFORE_FREED)) -> holds(10, !FENCES || GONE(0,t) && GONE(1,t)); put(t,RELEASED); released[t]++ } \
  :: d_step { ACKS && !ack[t] && (rec[t]==COMMITTED || (IS(ACK_BEFORE_COMMIT) && VOTED(t))) -> ack[t]=true }

#define evict_for(t) \
  :: d_step { rec[0]==COMMITTED && MAYEVICT(t) && CHOSEN -> holds(7, WAITSNOW(0,t) && WAITSNOW(1,t) && LOWER); put(0,EVICTING) }
#if BOOSTS
#define LOWER (!boosted)
#define CHOSEN chosen
#else
#define LOWER true
#define CHOSEN true
#endif

/* The loss of a member: its node is fenced and dead, its charge ends, and the unit that replaces the member may ask for a place. */
#define loses \
  :: d_step { (rec[0]==COMMITTED || IS(LOSS_WITHOUT_STATE) && rec[0]==RELEASING) && !lost && (fenced[1] || IS(LOSS_WITHOUT_FENCE_COMPARE) && buried[1]) -> \
       holds(10, fenced[1] || FREEDBY(1,0)); put(0,COMMITTED); lost=true }
#define coord_knows(c) \
  :: d_step { loaded[c] && !knows[c] && (lost || IS(LOSS_UNCHARGED_EARLY) && fenced[1] && rec[0]==COMMITTED) -> knows[c]=true }

/* A stop that leaves a process: the grant ends, and the device is an orphan until the process has ended. */
#define agent_strays(a,t) \
  :: d_step { ph[a]==UP && L(a,t)==HELD && RUNS(a,t) && rec[t]==RELEASING -> tomb(a,t) } \
  :: d_step { RUNS(a,t) && !OWNS(a,t) -> stops(a,t) }

/* A RELEASED record is kept until every agent has told that it holds nothing of the transaction. */
#define HEARD(a,t) (!ON(a,t) || FREEDBY(a,t) || (ph[a]==UP && !fenced[a] && L(a,t)==FREE) || IS(COLLECT_LOST_UNHEARD) && LOST(a,t))
#define collect_released(t) \
  :: d_step { rec[t]==RELEASED && (HEARD(0,t) && HEARD(1,t) || IS(COLLECT_UNHEARD)) -> put(t,ABSENT); gone[t]=true }

#if LIMITS
#define ROOM(c)    known[c]
#define sends(c,t) late[c*NT+t]=told
#define lands(c,t) holds(2, LIVESUM<=bound[c] && !(late[c*NT+t] && LIVESUM>limit))
#if IS(LIMIT_BEFORE_ELECTION)
#define READS(c)   (c<=epoch+1)
#else
#define READS(c)   (c<=epoch)
#endif
#define coord_lowers(c) \
  :: d_step { READS(c) && known[c]==0 -> known[c]=limit } \
  :: d_step { loaded[c] && known[c]==LIMIT && !lowers[c] -> lowers[c]=true } \
  :: d_step { lowers[c] && limit==LIMIT && (LEADER(c) || IS(LIMIT_WITHOUT_EPOCH)) -> limit=LIMIT-1; lowered[c]=true } \
  :: d_step { lowered[c] && known[c]==LIMIT -> known[c]=limit } \
  :: d_step { lowered[c] && (known[c]<LIMIT || IS(LIMIT_TOLD_BEFORE_KNOWN)) && !told -> told=true }
#else
#define ROOM(c)    LIMIT
#define sends(c,t) skip
#define lands(c,t) skip
#endif

#if HEALS
#define WEIGHS(c,t) ((t)==0 -> 2-knows[c] : 1)
#define MAYMEND(t) (t==0 || !MENDS || rec[0]==COMMITTED && lost || IS(MEND_WITHOUT_PARENT))
#define mends(t) holds(18, t==0 || !MENDS || rec[0]==COMMITTED && lost)
#else
#define WEIGHS(c,t) 1
#define MAYMEND(t) true
#define mends(t) skip
#endif
#if GROUPS
/* One Txn commits both, with the compares of both. */
#define ALONE IS(GROUP_CUT)
#define coord_group(c) \
  :: d_step { loaded[c] && !joint[c] && VOTED(0) && VOTED(1) && SUM(c)-CH(c,0)-CH(c,1)+2<=LIMIT -> joint[c]=true; CH(c,0)=true; CH(c,1)=true } \
  :: d_step { joint[c] && LEADER(c) && UNDECIDED(0) && UNDECIDED(1) && PRESENT(0) && PRESENT(1) -> put(0,COMMITTED); put(1,COMMITTED) } \
  :: d_step { IS(GROUP_BELOW_MINIMUM) && joint[c] && LEADER(c) && UNDECIDED(0) && PRESENT(0) -> put(0,COMMITTED) }
#else
#define ALONE true
#endif
#define DECIDED(t) (rec[t]==ABORTED || rec[t]==RELEASED)
#define coord_tx(c,t) \
  :: d_step { ALONE && loaded[c] && !sent[c*NT+t] && USABLE(t) && VOTED(t) && SUM(c)-CH(c,t)*WEIGHS(c,t)+WEIGHS(c,t)<=ROOM(c) -> sent[c*NT+t]=true; sends(c,t); CH(c,t)=!IS(UNKNOWN_NOT_CHARGED) } \
  :: d_step { sent[c*NT+t] && LEADER(c) && UNDECIDED(t) && PRESENT(t) && ONCE(t) && MAYMEND(t) -> mends(t); put(t,COMMITTED); lands(c,t) } /* commit point */ \
  :: d_step { CH(c,t) && (DECIDED(t) || (IS(ABSENT_IS_AN_OUTCOME) && rec[t]==ABSENT)) -> CH(c,t)=false }            /* outcome read */ \
  :: d_step { IS(UNKNOWN_NOT_CHARGED) && loaded[c] && !CH(c,t) && LIVE(t) && sent[c*NT+t] -> CH(c,t)=true }

/* An ABORTED record is collected by a leader that has no commit of it in doubt; a definite Conflict ends the doubt. */
#define coord_collect(c,t) \
  :: d_step { sent[c*NT+t] && !(LEADER(c) && UNDECIDED(t) && PRESENT(t)) -> sent[c*NT+t]=false } \
  :: d_step { loaded[c] && rec[t]==ABORTED && (LEADER(c) || IS(COLLECT_WITHOUT_EPOCH)) && (!sent[c*NT+t] || IS(COLLECT_IN_DOUBT)) -> put(t,ABSENT); gone[t]=true }

#ifdef WITNESS
#define SWAPPED swapped=true
#else
#define SWAPPED skip
#endif
/* Commit of a preemptor and end of its victim in one Txn. */
#define coord_swap(c,t) \
  :: d_step { loaded[c] && !swap[c*NT+t] && VOTED(t) && (FREED(0) || IS(SWAP_BEFORE_FREED)) && SUM(c)-CH(c,t)-CH(c,0)+1<=LIMIT -> swap[c*NT+t]=true; CH(c,t)=true } \
  :: d_step { swap[c*NT+t] && (LEADER(c) || IS(SWAP_WITHOUT_EPOCH)) && UNDECIDED(t) && PRESENT(t) && (rec[0]==EVICTING || rec[0]==RELEASING || (IS(SWAP_WITHOUT_VICTIM_STATE) && rec[0]==RELEASED)) -> \
       put(0,RELEASED); released[0]++; put(t,COMMITTED); SWAPPED }

#if NT == 3
#define load(c) CH(c,0)=LIVE(0); CH(c,1)=LIVE(1); CH(c,2)=LIVE(2)
#else
#if HEALS
#define load(c) CH(c,0)=LIVE(0); CH(c,1)=LIVE(1); knows[c]=lost
#else
#define load(c) CH(c,0)=LIVE(0); CH(c,1)=LIVE(1)
#endif
#endif
#if LIMITS
#define elected    bound[epoch]=limit
#define KNOWS(c)   (known[c]>0)
#else
#define elected    skip
#define KNOWS(c)   true
#endif
#define coord(c) \
  :: d_step { !loaded[c] && KNOWS(c) && (c<=epoch || (IS(SUM_BEFORE_ELECTION) && c==epoch+1)) -> load(c); loaded[c]=true } \
  coord_tx(c,0) coord_tx(c,1)

active proctype World() {
end:
  do :: atomic { if
  agent(0) agent_tx(0,0) agent_tx(0,1)
  agent(1) agent_tx(1,0) agent_tx(1,1)
  store_tx(0) store_tx(1)
  coord(0)
#if NC > 1
  :: d_step { epoch<NC-1 -> epoch++; elected }
  coord(1)
#endif
#if NC > 2
  coord(2)
#endif
#if NT == 3
  agent_tx(0,2) store_tx(2) coord_tx(0,2)
#if NC > 1
  coord_tx(1,2)
#endif
#if NC > 2
  coord_tx(2,2)
#endif
#endif
#if COLLECTS
  coord_collect(0,0) coord_collect(0,1)
#if NC > 1
  coord_collect(1,0) coord_collect(1,1)
#endif
#if NC > 2
  coord_collect(2,0) coord_collect(2,1)
#endif
#endif
#if BOOSTS
  :: d_step { rec[0]==COMMITTED && !chosen && (LOWER || IS(EVICT_PEER)) -> chosen=true }
  :: d_step { rec[0]==COMMITTED && !boosted -> boosted=true; chosen=chosen && IS(EVICT_WITHOUT_PRIORITY) }
#endif
#if LIMITS
  coord_lowers(0)
#if NC > 1
  coord_lowers(1)
#endif
#if NC > 2
  coord_lowers(2)
#endif
#endif
#if EPOCHS
  agent_unsees(0) agent_unsees(1)
  told_by(0,0,0) told_by(0,1,0) told_by(1,0,0) told_by(1,1,0)
  told_by(0,0,1) told_by(0,1,1) told_by(1,0,1) told_by(1,1,1)
#if NC > 2
  told_by(0,0,2) told_by(0,1,2) told_by(1,0,2) told_by(1,1,2)
#endif
#endif
#if FORGETS
  agent_forgets(0,0) agent_forgets(0,1) agent_forgets(1,0) agent_forgets(1,1)
  agent_audits(0) agent_audits(1)
#endif
#if FENCES
  agent_fenced(0) agent_fenced(1)
  agent_revotes(0,0) agent_revotes(0,1) agent_revotes(1,0) agent_revotes(1,1)
  collect_released(0) collect_released(1)
#endif
#if HEALS
  loses coord_knows(0)
#if NC > 1
  coord_knows(1)
#endif
#if NC > 2
  coord_knows(2)
#endif
#endif
#if GROUPS
  coord_group(0)
#if NC > 1
  coord_group(1)
#endif
#if NC > 2
  coord_group(2)
#endif
#endif
#if STRAYS
  agent_strays(0,0) agent_strays(0,1) agent_strays(1,0) agent_strays(1,1)
#endif
#if PREEMPT
  agent_victim(0) agent_victim(1)
  agent_waits(0,1) agent_waits(1,1) evict_for(1) coord_swap(0,1)
#if NC > 1
  coord_swap(1,1)
#endif
#if NC > 2
  coord_swap(2,1)
#endif
#if NT == 3
  agent_waits(0,2) evict_for(2) coord_swap(0,2)
#if NC > 1
  coord_swap(1,2)
#endif
#if NC > 2
  coord_swap(2,2)
#endif
#endif
#endif
  fi; d_step { check() } }
  od
}
