// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package connection keeps a live connection to every enrolled cluster. It is the multicluster-runtime provider.
//
// Sources (packages capi and kubeconfig) define which clusters to connect and with which credentials. One reconciler
// per enrolment connects, probes, backs off, rotates, replaces and drains. The pure functions lifecycle.Decide (next
// step) and lifecycle.Transition (next state and actions) drive it.
//
//	Pending → Connecting → Connected ⇄ Degraded → Backoff → Connecting …
//	                           any engaged state → Draining → Pending or Removed
//
// # Where to change what
//
// This package holds the Provider, its record of each enrolment, and the steps of the reconciler. Its subpackages do
// not know the Provider:
//
//	lifecycle    the pure state machine: the next step, and the transition for an event
//	transport    sends requests to one API server, and limits, meters and paces its responses
//	probe        queries an API server about itself, and turns errors into condition messages
//	allocation   arbitrates between enrolments that want the same cluster, place in a class, or turn
//	reason       the reasons shown to users
//
// types.go, key.go and options.go are the public API. The Provider drives enrolments through the state machine, with
// one type for each concern:
//
//	Provider    setup.go wires and starts it, reconcile.go reconciles one enrolment
//	records     the state of each enrolment (record.go), and the queue that requeues it
//	view        snapshots for readers, notifications to subscribers, and events: view.go, refused.go, announce.go
//	classRules  what the hub's classes allow: hold.go, with everything else that holds an enrolment
//	identities  which of several enrolments holds a cluster or an identifier
//	claimant    claims a cluster for this hub, and releases it: hub.go
//	schedule    when an enrolment is due next
//	contact     what contacting a cluster needs: a place, credentials, a measured probe
//	connector   makes a connection; connected.go is a live one
//	checker     checks the health of the active connection: check.go; and its Secret for changes: check_credentials.go
//	engager     engages and disengages controllers with a cluster
//	offboarding drains work, and offboards clusters: offboard.go
//	panics      notes, counts and logs panics
//
// A type knows only those that it is given, and none knows the Provider. No files depend on each other in a cycle,
// except types.go and enrolled.go.
//
// # Guarantees
//
//   - A dead, slow or half-broken cluster does not delay another. First attempts, retries, probes, and probes of
//     connections whose last probe failed have their own places and workers (admission). None of these waits for
//     another, and no worker is held while waiting for a place. By default no namespace of the hub gets more than half
//     of the places of a kind, and the namespace with the fewest is next: a tenant with unresponsive clusters delays
//     only their own. The limit: when several tenants fill all the places of a kind, another waits until a place is
//     free, for two probe time-outs (10 s) at most: a probe takes no longer as a whole. One that took a second is
//     repeated in the places for connections whose last probe failed.
//   - Touching a Secret, or deleting and re-creating it, does not end a back-off. Changed credentials do.
//   - A failed probe, 401 and 403 included, makes a connection Degraded; the next probe follows after a second. Only
//     the threshold, or a response from another cluster, or from one of another hub, ends the connection. After a new
//     TCP connection, the next probe checks the cluster's identity.
//   - Get, List, Lookup and ByIdentifier never wait for anything but a short lock.
//   - A rotated token is swapped in place: no informer restarts, no watch is interrupted. For a new endpoint, authority
//     or client certificate, a new connection is made, verified to reach the same cluster, engaged and synced before
//     the old one ends. New credentials that do not work leave the active connection alone.
//   - From the first probe that fails, writes to the cluster fail at once with multicluster.ErrClusterNotConnected and
//     queued work is held, except for offboarding; what is watched is still served. After the threshold (five) it is
//     disengaged. If it recovers before that, its identity is verified and nothing restarts.
//   - A name refers to one cluster, identified by the UID of its namespace kube-system, for as long as the enrolled
//     object exists; across restarts if Pins are given. If two enrolments lead to one cluster or request one
//     identifier, the first holds it until it is un-enrolled, connected or not. The hub is refused. UIDs, which
//     clusters report, and identifiers, which users of the hub set, never overlap.
//   - An object that is deleted and re-created under the same name starts from scratch and never uses its predecessor's
//     connection.
//   - An ended connection keeps no goroutine, socket or metric series, and its clients return
//     multicluster.ErrClusterNotConnected. Its context ends with the reason as the cause.
//   - No response is read beyond a limit (transport.Limits): 8 MiB, 16 MiB for a page of a list, 8 MiB for each event
//     of a watch. Compression is neither requested nor decoded. Responses in flight, and what is kept of them, are
//     charged to one budget for the process.
//   - A panic while handling a cluster's data ends the connection to that cluster, with the reason Panicked, not the
//     process. It counts as three failures to connect, for a longer back-off. A cluster that is being offboarded is
//     offboarded as far as possible. Package guard documents what is guarded and what is not.
//   - Requests go to the API server directly, or through the proxy of a kubeconfig if the operator allows those; never
//     through the proxy of this process's environment, which would resolve names that credentials.CheckAddress must
//     check.
//   - A cluster that is connected when its enrolment ends, or is no longer allowed, is offboarded before it is
//     disconnected (OffboardFunc): for at most OffboardTimeout, only while it responds, and in its own goroutine. So is
//     one whose last probe failed, if it then responds and is the same cluster. A cluster that is not connected then is
//     not offboarded. One whose enrolment ended while no manager ran, or whose manager ended before it was done, is
//     connected for it at the next start, if Pins know it and it is the same cluster.
//   - No Secret of the hub is cached, except for its metadata, and nothing of a workload cluster: package kindwatch
//     watches it within bounds. No token is in a rest.Config, a log line, an event, a condition or a metric.
//   - A cluster that belongs to another hub is not engaged, and nothing is written to a cluster that this hub has not
//     claimed (hub.go, package hubidentity). A cluster that leaves is released to other hubs.
//   - The only other writes are events on the enrolled objects in the hub, on transitions.
//
// # Locking
//
// The work queue hands a key to one worker at a time, so the fields of a record need no lock; fields set by others are
// atomic. The records, the view, the OffboardFuncs and the subpackages have a lock each. Locks are held for map
// operations only, never during I/O and never while calling out (subscribers, the gate, Engage, the recorder), and no
// lock is taken while holding another. Besides workers, there are these goroutines: one of each connection; one while a
// cluster is drained; one while a connection is handed over.
//
// Workers do not wait for drains and hand-overs: a thousand clusters un-enrolled at once would block all of them. Half
// as many clusters as are tried for the first time are offboarded at once, and as many have two connections.
// Workers do make the probes: a goroutine and a timer for each cluster cost more than a queue.
//
// # Choices
//
//   - The probe is GET /readyz. Cluster API probes /, which not every user may read; /readyz is readable by every
//     authenticated user and reports control plane health. Any response but 401 means reachable: an API server that is
//     not ready is engaged, with ControlPlaneHealthy False. 403 and 404 mean Unknown.
//   - A 401 response to any client's request triggers a probe, so an expired token is noticed within a second; the
//     Secret is then read once. Its content decides between a swap, a new connection and Backoff.
//   - Enrolled objects get no finalizer: they belong to others, whose deletion must not depend on this manager. A
//     cluster stays engaged until its object is gone, so that objects deleted in it meanwhile are deleted in the hub,
//     too. Then it is offboarded, if it still responds.
//   - The back-off is exponential with full jitter, and ends at once when the Secret holds other credentials. It keeps
//     growing until a connection has lasted two minutes, so that the manager does not keep reconnecting to a cluster
//     that accepts connections but does not work.
//   - A cluster that becomes not ready, or loses its Secret or its class, stays connected for a grace period: this is
//     often brief, and the connection works. What is asked for or forbidden takes effect at once: pausing, a namespace
//     that its class does not allow (any more), an identifier that is refused.
//
// # What does the owner of one workload cluster gain from the hub or another cluster through this?
//
// They receive the manager's requests to their cluster, which carry only that cluster's own credentials. Responses
// cannot redirect the manager: redirects are errors, other hosts are refused, headers and probe responses are limited,
// and self-reported values are accepted only if they look like a UID or a version. An owner can impersonate another
// cluster by giving kube-system its UID, since there is no other source for it. While that cluster is enrolled,
// connected or not, the impostor is refused as a duplicate; if that cluster is enrolled later, it is refused itself,
// with a condition that names the impostor. The UID must be used from the first connection of an enrolment on: a change
// is refused (ClusterIdentityChanged). An identifier set by annotation cannot be taken.
//
// What remains: a cluster enrolled for the first time with the UID of one that was un-enrolled before acts in its name,
// and gets access to what that one left in the hub: claims that were not deleted, and their Secrets. This requires the
// right to enrol a cluster with a class that leads to the same namespaces (EnrollmentClass spec.allowedNamespaces), and
// the UID, which is no secret. Set an identifier by annotation on clusters whose objects outlive them, and delete what
// a cluster left when it is un-enrolled for good. Remembering the UIDs of all former clusters was rejected: a record
// that nobody may delete grows forever, one that the tenant may delete, as a ClusterProfile, protects nothing, and
// re-enrolling a cluster after a mistake would need an administrator.
//
// A slow or hostile API server blocks one worker for one time-out. Its memory use is bounded: each response is scanned
// before it is decoded (package bounded), and responses in flight and kept objects are charged to the account of the
// connection (package budget). A cluster that exceeds its share of a full budget is refused, as its condition
// WithinLimits shows; clusters within their share are not affected. An object that makes the manager panic costs its
// own cluster the connection, with a longer back-off each time (package guard, ReasonPanicked).
//
// Package credentials covers users who may write kubeconfigs in the hub; the class restricts who may use it
// (EnrollmentClass spec.allowedNamespaces). The message of a refused duplicate shows them the name of the enrolment
// that holds the cluster.
package connection
