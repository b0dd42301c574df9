// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package connection keeps a live connection to every enrolled cluster, and is the provider of clusters for
// multicluster-runtime.
//
// Sources (packages capi and kubeconfig) say which clusters should be connected and with which credentials. One
// reconciler per enrolment does the rest: it connects, probes, backs off, rotates, replaces and drains, as the pure
// functions lifecycle.Decide (what comes next) and lifecycle.Transition (what an event leads to) say.
//
//	Pending → Connecting → Connected ⇄ Degraded → Backoff → Connecting …
//	                           any engaged state → Draining → Pending or Removed
//
// # Where to change what
//
// This package is the roof: the Provider, what it knows of each enrolment, and the steps that it takes. Below it are
// rooms that know nothing of the Provider:
//
//	lifecycle    the machine, which is pure: what comes next, and what an event leads to
//	transport    carries requests to one API server, and bounds, meters and paces its answers
//	probe        asks an API server about itself, and puts what fails into words
//	allocation   decides between enrolments that want the same cluster, place in a class, or turn
//	closedcache  the cache of one workload cluster
//	reason       the reasons that users read
//
// types.go, key.go and options.go are what others see. The Provider takes enrolments through the machine, and holds a
// type for each thing that this takes:
//
//	Provider    setup.go wires and starts it, reconcile.go takes one enrolment through its steps
//	records     what is known of each enrolment (record.go), and the queue that wakes it
//	view        what readers see, subscribers are told of, and events say: view.go, refused.go, announce.go
//	classRules  what the classes in the hub allow: hold.go, with what else keeps an enrolment from being connected
//	identities  which of several enrolments has a cluster or an identifier
//	claimant    claims a cluster for this hub, and gives it up: hub.go
//	schedule    when an enrolment is due next
//	contact     what talking to a cluster takes: room, credentials, a probe that is measured
//	connector   makes a connection; connected.go is one that is live
//	checker     how a connection is that serves: check.go; and whether its Secret has changed: check_credentials.go
//	engager     begins and ends the work of controllers in a cluster
//	offboarding drains that work, and offboards clusters: offboard.go
//	panics      what is told of panics
//
// A type knows those that it is given, and none knows the Provider. No file leads back to one that leads to
// it, but types.go and enrolled.go do.
//
// # Guarantees
//
//   - A cluster that is dead, slow or half-broken does not hold up another. First attempts, retries, probes, and probes
//     of connections whose last probe failed have places and workers of their own (admission), so that none of these
//     waits for another, and nobody holds a worker while waiting for a place. No namespace of the hub has more than
//     half of the places of a kind unless set otherwise, and who has the fewest is next: a tenant whose clusters do not
//     answer delays his own. The limit: when several tenants fill all the places of a kind, another waits for one
//     time-out of a probe (5 s), as a place is given back then.
//   - That a Secret is touched, or is taken away and put back, ends no back-off. That it holds other credentials does.
//   - A probe that fails, 401 included, makes a connection Degraded; the next one comes after a second. Only the
//     threshold, or the answer of another cluster, ends the connection. Whenever there was a new TCP connection since
//     the last probe, the next one asks for the identity of the cluster.
//   - Get, List, Lookup and ByIdentifier never wait for anything but a short lock.
//   - A rotated token is swapped in place: no informer restarts, no watch is cut. A new endpoint, authority or client
//     certificate is connected to, found to be the same cluster, engaged and filled before the old connection ends. New
//     credentials that do not work leave the connection that serves alone.
//   - From the first probe that fails, writes to the cluster fail at once with multicluster.ErrClusterNotConnected and
//     queued work is held, but for offboarding; caches are still served. After the threshold (five) it is disengaged.
//     When it comes back before that, it is made sure that it is the same cluster, and nothing restarts.
//   - A name leads to one cluster, recognised by the UID of its namespace kube-system, for as long as the enrolled
//     object lives; across restarts if Pins are given. Of two enrolments that lead to one cluster or ask for one
//     identifier, the first holds it until it is un-enrolled, connected or not. The hub is refused. UIDs, which a
//     cluster says of itself, and identifiers, which people in the hub write, have no value in common.
//   - An object that is deleted and made anew under the same name starts afresh and is never served by its
//     predecessor's connection.
//   - A connection that has ended keeps no goroutine, no socket, no metric series, and its clients return
//     multicluster.ErrClusterNotConnected. Its context ends with the reason as the cause.
//   - No answer of an API server is read beyond a limit (transport.Limits): 8 MiB, 16 MiB for a page of a list, 8 MiB
//     for each event of a watch. Compression is not asked for and not undone. Answers under way, and what is kept of
//     them, are charged to one budget for the process.
//   - A panic while something of a cluster is handled ends the connection to that cluster, with the reason Panicked,
//     and not the process. It counts as three failures to connect, so that it backs off longer. A cluster that is being
//     offboarded is offboarded as far as that goes. Package guard says what is guarded and what is not.
//   - Requests go to the API server directly, or through the proxy of a kubeconfig if the operator allows those; never
//     through the proxy in this process's environment, which would resolve names that credentials.CheckAddress must
//     see.
//   - A cluster that is connected when its enrolment ends, or is not allowed any more, is offboarded before it is
//     disconnected (OffboardFunc): no longer than OffboardTimeout, no longer than it answers, and in a goroutine of its
//     own. So is one whose last probe failed, if it answers then and is the same cluster. One that is not connected
//     then, or whose enrolment ends while no manager runs, is not.
//   - No Secret of the hub is held in a cache, and Secrets and ConfigMaps of workload clusters are not either, but for
//     their metadata. No token is in a rest.Config, a log line, an event, a condition or a metric.
//   - A cluster that belongs to another hub is not engaged, and nothing is written to one that this hub has not claimed
//     (hub.go, package hubidentity). A cluster that leaves is released to other hubs.
//   - Nothing else is written to any cluster, but events on the enrolled objects in the hub, on transitions.
//
// # Locking
//
// A work queue gives a key to one worker at a time, so that the fields of a record need no lock; what others set there
// is atomic. The records, the view, the OffboardFuncs and the rooms have a lock each. They are held for map operations
// only, never during I/O and never while calling out (subscribers, the gate, Engage, the recorder), and nothing takes
// one while holding another. Provider.mu guards the indexes until it has started. Besides workers, there are these
// goroutines: what the cache of a connection needs; one while a cluster is drained; one while a connection is handed
// over.
//
// Drains and hand-overs are not waited for by a worker, because a thousand clusters that are un-enrolled at once would
// hold all of them. Probes are made by workers, since a goroutine and a timer for each cluster cost more than a queue.
//
// # Choices
//
//   - The probe is GET /readyz. Cluster API asks for /, which an API server does not let everybody read; /readyz is
//     readable by every authenticated user, and says how the control plane is. Whatever answers, but with 401, is
//     reachable: an API server that says it is not ready is engaged, with ControlPlaneHealthy False. 403 and 404 mean
//     Unknown.
//   - A request of any client that is answered 401 causes a probe, so that an expired token is noticed within a second;
//     the Secret is then read once. What it holds decides between a swap, a new connection and Backoff.
//   - No finalizer is put on the objects that people enrol: they belong to somebody else, whose deletion must not hang
//     on this manager. A cluster stays engaged while its object is being deleted, until the object is gone, so that
//     what is deleted in it meanwhile is deleted in the hub, too. Then it is offboarded, if it still answers.
//   - The back-off is exponential with full jitter, and ends at once when the Secret holds other credentials. It goes
//     on growing until a connection has lasted two minutes, so that a cluster that accepts connections and is of no use
//     does not have the manager connect to it again and again.
//   - A cluster that becomes not ready, or loses its Secret or its class, is kept for a grace period, as these are
//     often brief and the connection works; pausing takes effect at once, because somebody asked for it, and so does
//     what somebody forbids: a namespace that its class does not allow (any more), an identifier that is refused.
//
// # The list P1–P26 of what a provider must withstand
//
//	P1  serial connect           workers, admission: TestDeadClustersDelayNobody, TestOneNamespaceLeavesRoomToOthers, TestDeadClustersThatFailedBeforeLeaveRoom
//	P2  blocking Engage          multicluster.Controller; nothing here waits in Engage
//	P3  missing CRD              kindwatch; indexes are added with their informer:
//	                             TestIndexesAreFrozenAndAppliedToEveryCluster
//	P4  crash at start           no failure of a cluster ends Start: TestDeadClustersDelayNobody
//	P5  no health check          TestDegradedFailsWritesHoldsWorkAndRecoversWithoutRestart, TestStoppedProcess
//	P6  no back-off              TestBackoff, TestFlappingClusterBacksOff; package lifecycle: TestDecide
//	P7  Secret changes unseen    package capi: TestKeysOfSecret, TestEnrolmentOnARealHub
//	P8  tear-down on any change  credentials.Compare: TestCompare;
//	                             TestTokenRotatedTwentyTimesRestartsNoInformerAndLosesNoEvent
//	P9  break before make        TestEndpointChangeLeavesNoGap
//	P10 never disengages         TestPausedNotReadyAndDeleting
//	P11 label removal unseen     package capi: TestEnrolmentOnARealHub; TestLabelRemovedAndPutBack
//	P12 paused, deleting         TestPausedNotReadyAndDeleting; without a finalizer, see above
//	P13 name collisions          Key.ClusterName holds source, namespace and name: TestKeyAndClusterName
//	P14 recreated, stale client  TestRecreatedObjectIsNeverServedByTheOldConnection
//	P15 full caches              package closedcache: TestConnectsAndReconciles, TestTrim
//	P16 5 QPS for each kind      one throttle for each cluster: TestThrottleCountsTheTimeThatRequestsWait
//	P17 no time-outs on reads    TestReadsHaveADeadlineAndWatchesHaveNone
//	P18 dangerous kubeconfigs    package credentials: TestParse, TestCheckAddress, FuzzParse; TestProberExplainsErrors,
//	                             TestProxyAtADeniedAddressIsNotUsed
//	P19 context of the engage    from Start, with a cause: TestStoppedProcess, TestEndpointChangeLeavesNoGap
//	P20 Start errors             TestCacheThatStopsByItselfIsNoticed
//	P21 status, events, metrics  snapshots, TestTwentyRoundsLeaveNothingBehind, TestMetricsFollowTheState
//	P22 indexes after the start  refused: TestIndexesAreFrozenAndAppliedToEveryCluster
//	P23 leader only              not handled: a replica that waits for the lease has no clusters. Warm connections
//	                             would double the load on every workload cluster to save seconds in a fail-over, and
//	                             nothing here answers requests of others, as webhooks would.
//	P24 access to itself         not handled, because it cannot arise: the hub is refused, TestHubItselfIsRefused
//	P25 goroutine leaks          TestTwentyRoundsLeaveNothingBehind
//	P26 storms                   admission, first probes spread, one read of the Secret for a 401: TestAdmission,
//	                             TestUnauthorizedReadsTheSecretAgain
//
// # What does the owner of one workload cluster gain from the hub or another cluster through this?
//
// The manager's requests to their cluster, which carry that cluster's own credentials and no other's. The answers can
// not steer it: redirects are errors, other hosts are refused, headers and answers to probes are limited, and what an
// API server says of itself is taken only if it looks like a UID or a version. They can pretend to be another cluster
// by giving kube-system its UID, since an API server's word is all there is. While that cluster is enrolled, connected
// or not, they are refused as a duplicate; if it is enrolled later, it is refused, with a condition that names them.
// And they must say so from the first connection of their enrolment on: a change is refused (ClusterIdentityChanged).
// They cannot take an identifier that an annotation gave.
//
// What remains: a cluster that is enrolled for the first time, with the UID of one that was un-enrolled before, acts in
// its name, and so gets at what that one left in the hub: claims that were not deleted there before, and the Secrets of
// these. It takes the right to enrol a cluster with a class that leads to the same namespaces (EnrollmentClass
// spec.allowedNamespaces), and knowledge of the UID, which is no secret. Give clusters whose objects outlive them an
// identifier by annotation, and delete what a cluster left when it is un-enrolled for good. To remember the UIDs of all
// clusters that ever were was rejected: a record that nobody may delete grows for ever, and one that the tenant may
// delete, as a ClusterProfile, protects nothing; and enrolling a cluster again after a mistake would need an
// administrator.
//
// A slow or hostile API server costs the manager one worker for the time of a time-out. The memory that it takes is
// bounded: each answer is scanned before it is decoded (package bounded), and answers under way and the objects that
// are kept are charged to the account of the connection (package budget). Who asks for more than its share of a full
// budget is refused, and says so by the condition WithinLimits; nobody who stays within its share notices. An object
// that makes the manager panic costs its own cluster the connection, and longer back-offs each time (package guard,
// ReasonPanicked).
//
// Who may write kubeconfigs in the hub is covered by package credentials, and which classes they may use by the class
// (EnrollmentClass spec.allowedNamespaces); the message of a refused duplicate tells them the name of the enrolment
// that holds the cluster.
package connection
