/* A store that is restored from an old backup while agents run what it has forgotten, and its reconciliation (ADR 10).
 *
 * Two agents with one device each, two gangs that need both.
 *   CONF 1  the whole story; one leader after the restore, one OS crash
 *   CONF 2  begins with the restore: gang 0 has come back, gang 1 is held and forgotten; two leaders
 *   CONF 3  as 2 with one leader and one OS crash; the store may outgrow what agent 1 has heard: it never notices
 *   CONF 4  as 3; the backup is of the same term and one revision older, all coordinators were restarted, and the restoration is
 *           declared (ADR 138): an agent that registered before is behind, whatever it has heard, and I4 is asked of all
 * Until the restore one leader commits and releases them; a
 * backup is taken at any moment and comes back at any later one. After it leaders 0 and 1 are elected in turn; both act
 * until the end, and what they have sent may arrive at any later time. Each may reconcile an agent that is in
 * quarantine: it reads who is registered (look), has both agents tell what they hold (told), ends the gangs that came
 * back and are not held, then makes the records of held gangs anew or disowns them, as its operator says, and at last
 * orders the agent to go on.
 *
 * An agent is behind if it has heard, from a record or a registration, of something later than the backup. That is
 * noticed at a registration, however late.
 * What the lost leader had sent is not delivered after the restore. A vote is of the registered incarnation; a wrong
 * order of registering and reading is muster.pml's. Quotas are left out, and so is preemption.
 *
 * Invariants: I1; I3 for records that were written after the restore, and for all at agents that were reconciled; I4: a
 * device that is HELD is freed only if the gang's owner asked for its end or an operator decided it; I11.
 */
#ifndef MUTANT
#define MUTANT 0
#endif
#define IS(n) (MUTANT==n)
#define RESTORED_WITHOUT_QUARANTINE 46
#define RETURNED_STAYS              47
#define ADOPT_WITHOUT_REGISTRATION  48
#define ADOPT_PARTIAL               49
#define DISOWN_WITHOUT_RECORD       50
#define UNDECLARED                  60

#ifndef CONF
#define CONF 1
#endif
#ifndef CRASHES
#define CRASHES (CONF!=2)
#endif
#ifndef NC
#if CONF == 2
#define NC 2
#else
#define NC 1
#endif
#endif
#define GIVEN (CONF>1)
#define OUTGROWS (CONF>=3)
#define DECLARED (CONF==4 && !IS(UNDECLARED))

mtype = { ABSENT, ABORTED, COMMITTED, RELEASING, RELEASED };    /* record */
mtype = { FREE, RESERVED, HELD, TOMB };                         /* agent, per transaction */
mtype = { UP, DOWN, BOOT };                                     /* agent */
mtype = { BEFORE, SAVED, RESTORED };                            /* the store */
mtype = { IDLE, LOOKED, TOLD0, TOLD1, ENDED };                  /* a reconciliation */

/* Store; a gang is of the time before or after the restore. */
mtype era = BEFORE;
mtype rec[2] = ABSENT;
mtype saved[2] = ABSENT;
bool fresh[2];                  /* the record was written after the backup */
bool early[2];                  /* begun before the restore */
bool later[2];                  /* or after it */
byte lead;
/* Agents; index a*2+t. */
mtype loc[4] = FREE;
mtype ph[2] = UP;
bool knows[2];                  /* has heard of what is later than the backup; after the restore: is behind */
bool quar[2];
bool disowned[4];               /* by the order that ended the quarantine */
byte crashes;
/* Votes of the registered incarnation. */
bool yes[4];
/* Leaders after the restore: what the reconciliation that is under way has seen. */
mtype at[NC] = IDLE;
byte target[NC];
bool adopts[NC];                /* what the operator wants */
bool valid[NC*2];               /* the registration that was read still stands */
bool held[NC*4];                /* as told */
bool frees[NC*2];               /* gangs that the order releases */
/* Messages. */
bool order[NC*2];               /* to an agent: leave the quarantine */
bool orderfrees[NC*4];          /* and release these */
bool release[4];                /* to an agent that is not in quarantine */
/* Observers. */
bool asked[2];                  /* somebody who may has asked for the end */
bool sure[2];                   /* written after the restore */
bool done[2];                   /* the agent was reconciled */
bool blind;                     /* agent 1 cannot notice the restore any more */

#define L(a,t)     loc[(a)*2+(t)]
#define U(t)       (1-(t))
#define OWNS(a,t)  (L(a,t)==RESERVED || L(a,t)==HELD)
#define SEES(a)    (ph[a]==UP && !quar[a])
#define NOW(t)     ((era==RESTORED -> !early[t] : !later[t]) && (t==0 || early[0] || later[0])) /* may be begun, or is of this time */
#define written(t) fresh[t]=(era==SAVED)
#define hears(a,t) knows[a]=knows[a] || (era==SAVED && fresh[t])

#define holds(i,e) assert((e) || 1000+i==0)
#define check_at(a,t) \
  holds(1, !(OWNS(a,0) && OWNS(a,1))); \
  holds(3, !(rec[t]==COMMITTED && (era!=RESTORED || sure[t] || done[a]) && !OWNS(a,t) && ph[a]==UP && !quar[a])); \
  holds(3, !(rec[t]==COMMITTED && sure[t] && quar[a] && ph[a]==UP && !OWNS(a,t)))
inline check() {
#ifdef WITNESS
  holds(99, !(lead==NC-1 && done[0] && done[1] && crashes==CRASHES && rec[0]==RELEASED && sure[1] && rec[1]==COMMITTED && L(0,1)==HELD && L(1,1)==HELD && early[1]));
#endif
  check_at(0,0); check_at(0,1); check_at(1,0); check_at(1,1)
}
#define put(t,s) \
  holds(11, (rec[t]==ABSENT && (s==COMMITTED || s==ABORTED)) || (rec[t]==COMMITTED && s==RELEASING) || (rec[t]==RELEASING && s==RELEASED)); \
  rec[t]=s; written(t)
#define frees_here(a,t) holds(4, L(a,t)!=HELD || asked[t] || (a==1 && blind)); L(a,t)=TOMB

#define agent_tx(a,t) \
  :: d_step { SEES(a) && L(a,t)==FREE && !OWNS(a,U(t)) && rec[t]==ABSENT && NOW(t) -> \
       L(a,t)=RESERVED; yes[a*2+t]=true; if :: era==RESTORED -> later[t]=true :: else -> early[t]=true fi }   /* Reserve */ \
  :: d_step { SEES(a) && L(a,t)==RESERVED && rec[t]==COMMITTED -> L(a,t)=HELD; hears(a,t) }                   /* Commit */ \
  :: d_step { SEES(a) && L(a,t)==RESERVED && rec[t]==ABSENT -> put(t,ABORTED) }                               /* resolve */ \
  :: d_step { SEES(a) && L(a,t)==RESERVED && rec[t]==ABORTED -> L(a,t)=FREE; hears(a,t) } \
  :: d_step { SEES(a) && L(a,t)!=TOMB && rec[t]==RELEASING -> frees_here(a,t); hears(a,t) }                   /* Release */ \
  :: d_step { SEES(a) && L(a,t)==TOMB && (rec[t]==RELEASED || rec[t]==ABSENT) -> L(a,t)=FREE; hears(a,t) }    /* Forget */ \
  :: d_step { SEES(a) && L(a,t)==HELD && release[a*2+t] -> frees_here(a,t) }                                  /* without a live record */ \
  :: d_step { ph[a]==DOWN && OWNS(a,t) -> L(a,t)=FREE }                              /* lost at the OS crash */

/* The first read of an incarnation, or after a quarantine: what is listed is adopted; a HELD grant of before that is not
 * listed gives way to what is. */
#define drops(a,t) \
  if :: L(a,t)==RESERVED && rec[t]!=COMMITTED && rec[t]!=RELEASING -> L(a,t)=FREE \
     :: else -> if :: L(a,t)==HELD && disowned[a*2+t] && rec[t]!=COMMITTED && rec[t]!=RELEASING -> frees_here(a,t) :: else fi fi; \
  disowned[a*2+t]=false
#define adopts_at(a,t) \
  if :: rec[t]==COMMITTED && L(a,t)!=TOMB -> \
       if :: L(a,U(t))==HELD && rec[U(t)]!=COMMITTED && rec[U(t)]!=RELEASING -> frees_here(a,U(t)) :: else fi; \
       if :: !OWNS(a,U(t)) -> L(a,t)=HELD :: else fi \
     :: else fi
#define join(a) drops(a,0); drops(a,1); adopts_at(a,0); adopts_at(a,1)

#define registers(a) valid[a]=false; valid[2*(NC-1)+a]=false; yes[a*2]=false; yes[a*2+1]=false; knows[a]=knows[a] || era==SAVED
#define BEHIND(a)  (era==RESTORED && (knows[a] || DECLARED && !done[a]) && !IS(RESTORED_WITHOUT_QUARANTINE))
#define agent(a) \
  :: d_step { crashes<CRASHES -> crashes++; ph[a]=DOWN } \
  :: d_step { ph[a]==DOWN -> ph[a]=BOOT } \
  :: d_step { SEES(a) && BEHIND(a) -> registers(a); quar[a]=true }                       /* now and then, and at a lower epoch */ \
  :: d_step { ph[a]==BOOT && !quar[a] -> registers(a); if :: BEHIND(a) -> quar[a]=true :: else -> join(a); ph[a]=UP fi }

#define store_tx(t) \
  :: d_step { rec[t]==ABSENT && NOW(t) && (early[t] || later[t]) -> put(t,ABORTED) }                          /* its leader gives up */ \
  :: d_step { rec[t]==ABSENT && NOW(t) && yes[t] && yes[2+t] -> put(t,COMMITTED); sure[t]=(era==RESTORED) }   /* commit */ \
  :: d_step { rec[t]==COMMITTED -> put(t,RELEASING); asked[t]=true }                                          /* by its owner */ \
  :: d_step { rec[t]==RELEASING && L(0,t)==TOMB && L(1,t)==TOMB && SEES(0) && SEES(1) -> put(t,RELEASED) }

#define HOLDS(c,b,t) held[(c)*4+(b)*2+(t)]
#define WHOLE(c,t)   (HOLDS(c,0,t) && HOLDS(c,1,t) || IS(ADOPT_PARTIAL))
#define tells(c,b)   HOLDS(c,b,0)=(L(b,0)==HELD); HOLDS(c,b,1)=(L(b,1)==HELD)
#define BACK(c,t)    (rec[t]==COMMITTED && !OWNS(target[c],t) && !HOLDS(c,target[c],t))
#define LOST(c,t)    (HOLDS(c,target[c],t) && rec[t]!=COMMITTED && rec[t]!=RELEASING && !frees[(c)*2+(t)])
#define STANDS(c)    (valid[(c)*2] && valid[(c)*2+1] || IS(ADOPT_WITHOUT_REGISTRATION))
/* What begins anew forgets what it has seen. */
#define rests(c) at[c]=IDLE; target[c]=0; adopts[c]=false; frees[c*2]=false; frees[c*2+1]=false; \
  held[c*4]=false; held[c*4+1]=false; held[c*4+2]=false; held[c*4+3]=false; valid[c*2]=false; valid[c*2+1]=false
#define looks(c,a,m) \
  :: d_step { era==RESTORED && c<=lead && at[c]==IDLE && quar[a] -> target[c]=a; adopts[c]=m; valid[c*2]=true; valid[c*2+1]=true; at[c]=LOOKED }
/* One that is not in quarantine is heard once its incarnation has registered. */
#define HEARD(b)     (ph[b]==UP || quar[b])
#define decides(c,t) \
  :: d_step { lead==c && at[c]==TOLD1 && BACK(c,t) && !IS(RETURNED_STAYS) -> put(t,RELEASING); asked[t]=true } \
  :: d_step { lead==c && at[c]==ENDED && adopts[c] && LOST(c,t) && WHOLE(c,t) && rec[t]==ABSENT && STANDS(c) -> put(t,COMMITTED); sure[t]=true } \
  :: d_step { (lead==c || IS(DISOWN_WITHOUT_RECORD)) && at[c]==ENDED && LOST(c,t) && (!adopts[c] || !WHOLE(c,t) || rec[t]!=ABSENT) -> \
       if :: rec[t]==ABSENT && !IS(DISOWN_WITHOUT_RECORD) -> put(t,ABORTED) :: else fi; \
       asked[t]=true; frees[c*2+t]=true; if :: HOLDS(c,1-target[c],t) -> release[2*(1-target[c])+t]=true :: else fi }
#define leader(c) \
  looks(c,0,true) looks(c,0,false) looks(c,1,true) looks(c,1,false) \
  :: d_step { at[c]==LOOKED && HEARD(0) -> tells(c,0); at[c]=TOLD0 } \
  :: d_step { at[c]==TOLD0 && HEARD(1) -> tells(c,1); at[c]=TOLD1 } \
  decides(c,0) decides(c,1) \
  :: d_step { at[c]==TOLD1 && (IS(RETURNED_STAYS) || !BACK(c,0) && !BACK(c,1)) -> at[c]=ENDED } \
  :: d_step { at[c]==ENDED && !LOST(c,0) && !LOST(c,1) -> \
       if :: quar[target[c]] -> order[c*2+target[c]]=true; orderfrees[c*4+2*target[c]]=frees[c*2]; orderfrees[c*4+2*target[c]+1]=frees[c*2+1] :: else fi; rests(c) } \
  :: d_step { at[c]!=IDLE -> rests(c) }                                                  /* given up */
/* Lets any leader in. */
#define obeys(a,c) \
  :: d_step { quar[a] && order[c*2+a] -> quar[a]=false; knows[a]=false; done[a]=true; ph[a]=BOOT; \
       disowned[a*2]=orderfrees[c*4+a*2] && L(a,0)==HELD; disowned[a*2+1]=orderfrees[c*4+a*2+1] && L(a,1)==HELD; \
       unorder(a,0); unorder(a,NC-1) }
#define unorder(a,c) order[(c)*2+a]=false; orderfrees[(c)*4+a*2]=false; orderfrees[(c)*4+a*2+1]=false   /* there is one restore */

active proctype World() {
#if GIVEN
  d_step { era=RESTORED; rec[0]=COMMITTED; asked[0]=true; L(0,1)=HELD; L(1,1)=HELD; early[0]=true; early[1]=true; knows[0]=true; knows[1]=true }
#endif
end:
  do :: atomic { if
  agent(0) agent_tx(0,0) agent_tx(0,1)
  agent(1) agent_tx(1,0) agent_tx(1,1)
  store_tx(0) store_tx(1)
  :: d_step { era==BEFORE -> saved[0]=rec[0]; saved[1]=rec[1]; era=SAVED }
  :: d_step { era==SAVED -> rec[0]=saved[0]; rec[1]=saved[1]; saved[0]=ABSENT; saved[1]=ABSENT; era=RESTORED; \
       yes[0]=false; yes[1]=false; yes[2]=false; yes[3]=false; fresh[0]=false; fresh[1]=false }
#if OUTGROWS
  :: d_step { era==RESTORED && !done[1] && !quar[1] && knows[1] -> knows[1]=false; blind=(CONF==3) }
#endif
  leader(0) obeys(0,0) obeys(1,0)
#if NC > 1
  :: d_step { era==RESTORED && lead<NC-1 -> lead++ }
  leader(1) obeys(0,1) obeys(1,1)
#endif
  fi; d_step { check() } }
  od
}
