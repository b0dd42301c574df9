#!/usr/bin/env bash
# The demo: a hub and two workload clusters on this machine, the manager, a requirement that is carried end to end, and
# an application. Everything is real: etcd, kube-apiserver, kube-controller-manager, kwok, Crossplane and Cluster API
# run as processes.
set -euo pipefail
cd "$(dirname "$0")/.."

. hack/demo-lib.sh

step "1. A hub (Kubernetes, Crossplane, Cluster API) and the workload clusters w1 and w2"
say "\$ bin/localfleet up --workloads 2"
bin/localfleet up --workloads 2 --dir "$fleet"

step "2. Install Masthead: CRDs and rights in the hub, rights in the workload clusters"
show hub apply --server-side -k config/default/crds-and-rights
show w1 apply --server-side -f config/workload -f config/samples/workload/claims-rights.yaml \
  -f config/samples/workload/health-checks-rights.yaml
show w2 apply --server-side -f config/workload -f config/samples/workload/claims-rights.yaml \
  -f config/samples/workload/health-checks-rights.yaml

step "3. The platform team's part: an API, a namespace for what is claimed, the class of the clusters to be enrolled"
show hub apply --server-side -f test/localfleet/manifests/samples/mysql-claimed.yaml
on hub get namespace bar >/dev/null 2>&1 || show hub create namespace bar
show hub apply --server-side -f config/samples/hub
wait_for "Crossplane to offer the API" on hub wait --for=condition=Offered --timeout=5s \
  compositeresourcedefinitions/compositemysqlinstances.database.acmeco.org
show hub get compositeresourcedefinitions

step "4. Run the manager, with the rights of its service account"
hack/demo-manager.sh "$fleet"

step "5. Enrol both clusters: a label on their Cluster API objects"
show hub get clusters.cluster.x-k8s.io
show hub label --overwrite clusters.cluster.x-k8s.io w1 w2 masthead.dev/enroll=true
for name in w1 w2; do
  wait_for "$name to be connected" on hub wait --for=condition=Connected --timeout=5s clusterprofiles/capi-"$name"
  wait_for "the API to be served in $name" on "$name" wait --for=condition=Established --timeout=5s \
    crd/mysqlinstancerequirements.database.acmeco.org
done
columns='NAME:.metadata.name,CONNECTED:.status.conditions[?(@.type=="Connected")].status'
columns+=',HEALTHY:.status.conditions[?(@.type=="ControlPlaneHealthy")].status,VERSION:.status.version.kubernetes'
show hub get clusterprofiles -o custom-columns="$columns"

show hub get enrollmentclasses

step "6. An application team in w1 looks at what it can claim, which keys a connection Secret has, and what there is to choose from. It cannot change any of it"
wait_for "the copy of the hub's definition" on w1 get compositeresourcedefinitions/compositemysqlinstances.database.acmeco.org
wait_for "the copy of the hub's Composition" on w1 get compositions/mysql.database.acmeco.org
show w1 get compositeresourcedefinitions
show w1 get compositeresourcedefinitions compositemysqlinstances.database.acmeco.org -o jsonpath='{.spec.connectionSecretKeys}{"\n"}'
show w1 get compositions
wait_for "the policy to be in force in w1" refused w1 delete composition mysql.database.acmeco.org --dry-run=server
refused w1 delete composition mysql.database.acmeco.org

step "7. An application team in w1 asks for a database, as if Crossplane ran there"
cat hack/demo-requirement.yaml
show w1 apply --server-side -f hack/demo-requirement.yaml
wait_for "the requirement to be ready" on w1 wait --for=condition=Ready --timeout=5s mysqlinstancerequirements/sqldb

step "8. In the hub: it is in the namespace bar and says where it came from; Crossplane has provisioned it"
show hub get mysqlinstancerequirements --namespace bar
show hub get mysqlinstancerequirements sqldb --namespace bar -o jsonpath='{.metadata.annotations}{"\n"}'

step "9. Back in w1: the status, and the connection Secret, owned by the requirement"
wait_for "the connection Secret" on w1 get secret sql-creds
show w1 get mysqlinstancerequirements sqldb
show w1 get secret sql-creds -o custom-columns='NAME:.metadata.name,TYPE:.type,OWNER:.metadata.ownerReferences[0].kind,KEYS:.data' |
  sed -E 's/(endpoint|password|username):[^] ]*/\1/g'

step "10. A team in w2 requests the same name: the first claim keeps it, the status of the second says which has it"
# What an earlier run of the demo has left.
on w2 delete mysqlinstancerequirements sqldb --ignore-not-found >/dev/null
on w2 annotate namespace default agent.crossplane.io/target-namespace- >/dev/null
show w2 apply --server-side -f hack/demo-requirement.yaml
synced='{.status.conditions[?(@.type=="AgentSynced")].status}'
wait_for "the conflict in w2" on w2 wait --for=jsonpath="$synced"=False --timeout=5s mysqlinstancerequirements/sqldb
show w2 get mysqlinstancerequirements sqldb -o jsonpath='{.status.conditions[?(@.type=="AgentSynced")].message}{"\n"}'

step "11. The platform team lets clusters of this class choose the namespace shop as well, and the team in w2 does"
on hub get namespace shop >/dev/null 2>&1 || show hub create namespace shop
show hub patch enrollmentclass default --type=merge -p '{"spec":{"agent":{"allowedTargetNamespaces":{"list":["shop"]}}}}'
show w2 annotate --overwrite namespace default agent.crossplane.io/target-namespace=shop
wait_for "the requirement of w2 to be ready" on w2 wait --for=condition=Ready --timeout=5s mysqlinstancerequirements/sqldb
show hub get mysqlinstancerequirements --all-namespaces

step "12. A namespace of w1 brings credentials of its own: what is done in the hub for it is done with the rights of agent1"
show hub apply --server-side -f config/samples/identity/serviceaccount.yaml
(
  umask 077
  cp "$fleet/hub.kubeconfig" "$fleet/agent1.kubeconfig"
)
config() { "$kubectl" --kubeconfig "$fleet/agent1.kubeconfig" config "$@"; }
context=$(config current-context)
config set-credentials agent1 --token "$(on hub create token agent1 --namespace bar --duration 24h)" >/dev/null
config set-context "$context" --user agent1 >/dev/null
for user in $(config get-users | tail -n +2 | grep -v '^agent1$'); do config delete-user "$user" >/dev/null; done
on w1 get namespace foo >/dev/null 2>&1 || show w1 create namespace foo
on w1 delete secret agent1-creds --namespace foo --ignore-not-found >/dev/null
show w1 create secret generic agent1-creds --namespace foo --from-file=kubeconfig="$fleet/agent1.kubeconfig"
show w1 annotate --overwrite namespace foo agent.crossplane.io/credentials-secret-name=agent1-creds
rename='s/sqldb/ordersdb/; s/sql-creds/orders-creds/; s/default/foo/'
say "\$ sed '$rename' hack/demo-requirement.yaml | kubectl --kubeconfig $fleet/w1.kubeconfig apply --server-side -f -"
sed "$rename" hack/demo-requirement.yaml | on w1 apply --server-side -f -
wait_for "the requirement of foo to be ready" on w1 wait --for=condition=Ready --timeout=5s --namespace foo mysqlinstancerequirements/ordersdb
show hub get mysqlinstancerequirements --namespace bar

step "13. Applications: WordPress in w1 and w2, as the KEP has it: five objects that belong together, and a health check"
for name in w1 w2; do
  wait_for "the kind Application in $name" on "$name" wait --for=condition=Established --timeout=5s crd/applications.apps.masthead.dev
  on "$name" get namespace blog >/dev/null 2>&1 || show "$name" create namespace blog
  show "$name" apply --server-side --namespace blog -f config/samples/application/wordpress.yaml
  # What a cloud would do.
  on "$name" patch service wordpress-webserver-svc --namespace blog --subresource=status --type=merge \
    -p '{"status":{"loadBalancer":{"ingress":[{"ip":"192.0.2.10"}]}}}' >/dev/null
  wait_for "WordPress in $name to be healthy" on "$name" wait --for=jsonpath='{.status.health}'=Healthy --timeout=5s --namespace blog applications/wordpress
  wait_for "its health check in $name" on "$name" wait --for=jsonpath='{.status.ready}'=True --timeout=5s --namespace blog applications/wordpress
done
show w1 get applications --namespace blog

step "14. A Service is deleted in w2: the application is not complete any more, and the hub shows in which cluster"
show w2 delete service wordpress-mysql-hsvc --namespace blog
wait_for "w2 to notice" on w2 wait --for=jsonpath='{.status.health}'=Missing --timeout=5s --namespace blog applications/wordpress
show w2 get applications --namespace blog
wait_for "the report in the hub" on hub wait --for=jsonpath='{.status.applications.missing}'=1 --timeout=5s applicationreports/capi-w2
show hub get applicationreports

step "15. In w1 the application is deleted, and everything that belongs to it goes with it"
show w1 delete applications wordpress --namespace blog
everything_gone() { [[ -z $(on w1 get statefulsets,services,pods --namespace blog --ignore-not-found -o name) ]]; }
wait_for "the garbage collector of w1" everything_gone
show w1 get statefulsets,services,pods --namespace blog

step "16. References: in w1, Subnets take their region from a ConfigMap, and one its network from another Subnet"
show w1 apply --server-side -f config/samples/references/rights.yaml -f pkg/references/testdata/managedexample/network.example.org_subnets.yaml
wait_for "the kind Subnet in w1" on w1 wait --for=condition=Established --timeout=5s crd/subnets.network.example.org
show hub patch enrollmentclass default --type=merge -p '{"spec":{"references":{"mode":"Enabled"}}}'
show w1 apply --namespace default -f config/samples/references/subnets.yaml
wait_for "the references to be resolved" on w1 wait --for=condition=ReferencesResolved --timeout=5s --namespace default subnets/main subnets/second
show w1 get subnets --namespace default \
  -o custom-columns=NAME:.metadata.name,REGION:.spec.forProvider.region,VPC:.spec.forProvider.vpcID

step "Done in $((SECONDS - started)) s. Everything is still up:"
cat <<TXT
  hub          export KUBECONFIG=$PWD/$fleet/hub.kubeconfig
  w1           export KUBECONFIG=$PWD/$fleet/w1.kubeconfig
  w2           export KUBECONFIG=$PWD/$fleet/w2.kubeconfig
  kubectl      $PWD/$kubectl
  manager log  $PWD/$fleet/manager.log

  Try: bin/localfleet pause w2, then look at the clusterprofiles in the hub; bin/localfleet resume w2; bin/localfleet rotate w1.
  Stop and remove everything: make demo-down
TXT
