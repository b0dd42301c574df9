#!/usr/bin/env bash
# The demo of imports: three clusters that exist in EKS, AKS and GKE appear in Cluster API, are enrolled, and carry a
# claim and an application. bin/fakecloud simulates the clouds; everything else is real: etcd, kube-apiserver,
# kube-controller-manager, kwok, Crossplane and Cluster API run as processes, and the API server of each cluster in the
# clouds is one of the fleet's.
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/demo-lib.sh

declare -A cluster=([in-eks]=w1 [in-aks]=w2 [in-gke]=w3) # where each cluster really runs
imports=(in-eks in-aks in-gke)
fifo=$fleet/fakecloud.fifo
clouds() { # makes something happen in the clouds, and shows their answer
  local before
  before=$(wc -l <"$fleet/fakecloud.log")
  echo "$1" >"$fifo"
  wait_for "the clouds" bash -c "(( \$(wc -l <'$fleet/fakecloud.log') > $before ))"
  say "(in the clouds: $(tail -n 1 "$fleet/fakecloud.log"))"
}
token_of() { on hub get secret "$1-kubeconfig" -o jsonpath='{.data.value}' | sha256sum | cut -c1-12; }
connected_since() {
  on hub get clusterprofiles "capi-$1" -o jsonpath='{.status.conditions[?(@.type=="Connected")].lastTransitionTime}'
}

step "1. A hub (Kubernetes, Crossplane, Cluster API) and three clusters that are not registered there yet"
say "\$ bin/localfleet up --workloads 3"
bin/localfleet up --workloads 3 --dir "$fleet"
# The fleet registers its clusters by itself. In this demo they are imported instead.
show hub delete clusters.cluster.x-k8s.io w1 w2 w3 --ignore-not-found

step "2. The kinds of the Crossplane providers and of Cluster API's providers for AWS, Azure and Google"
mkdir -p "$fleet/crds"
bin/fakecloud crds "$fleet/crds"
say "\$ kubectl --kubeconfig $fleet/hub.kubeconfig apply --server-side -f $fleet/crds"
on hub apply --server-side -f "$fleet/crds" | tail -n 3
show hub wait --for=condition=Established --timeout=120s crd clusters.eks.aws.m.upbound.io \
  kubernetesclusters.containerservice.azure.m.upbound.io clusters.container.gcp.m.upbound.io awsmanagedcontrolplanes.controlplane.cluster.x-k8s.io

step "3. Install Masthead, whose admission policies keep imported clusters safe, and the rights of imports"
show hub apply --server-side -k config/default/crds-and-rights
show hub apply --server-side -k config/imports
show hub apply --server-side -f test/localfleet/manifests/samples/mysql-claimed.yaml
on hub get namespace bar >/dev/null 2>&1 || show hub create namespace bar
show hub apply --server-side -f config/samples/hub

step "4. The clouds: EKS, AKS and GKE, with one cluster each, and the key of a Google service account for the one of GKE"
hack/demo-stop.sh "$fleet" fakecloud
on hub delete mutatingwebhookconfigurations,validatingwebhookconfigurations capa capg capz --ignore-not-found >/dev/null
rm -f "$fifo"
mkfifo "$fifo"
setsid nohup bin/fakecloud run --hub "$fleet/hub.kubeconfig" --eks "$fleet/w1.kubeconfig" --aks "$fleet/w2.kubeconfig" \
  --gke "$fleet/w3.kubeconfig" --dir "$fleet" 0<>"$fifo" >"$fleet/fakecloud.log" 2>&1 &
pid=$!
echo "$pid $(awk '{print $22}' "/proc/$pid/stat")" >"$fleet/fakecloud.pid"
wait_for "the clouds" grep -q "token endpoint" "$fleet/fakecloud.log"
endpoint=$(sed -n 's/^token endpoint: //p' "$fleet/fakecloud.log")
on hub delete secret google-key --ignore-not-found >/dev/null
show hub create secret generic google-key --from-file=key.json="$fleet/google-key.json"
show hub label secret google-key fleet.masthead.dev/import-credentials=true
if [[ -n ${MASTHEAD_WEBHOOKS:-} ]]; then
  say "The webhooks of Cluster API's providers are in the way"
  refused hub create --dry-run=server -f - <<<'{apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: GCPManagedControlPlane,
    metadata: {name: autopilot}, spec: {project: shop-project, location: europe-west3, enableAutopilot: true}}' |
    grep -C9 "Release channel is required"
fi

step "5. Run the manager, with the rights of its service account"
SSL_CERT_FILE=$fleet/token-ca.pem hack/demo-manager.sh "$fleet" --allowed-token-endpoints "$endpoint/"

step "6. Import the three clusters"
sed -n '/kind: ClusterImport/,$p' hack/demo-import.yaml
show hub apply --server-side -f hack/demo-import.yaml
for name in "${imports[@]}"; do
  wait_for "$name to be imported" on hub wait --for=condition=Ready --timeout=5s clusterimports/"$name"
  wait_for "the node pools of $name" on hub wait --for=jsonpath='{.status.observed.nodePools}'=2/2 --timeout=5s clusterimports/"$name"
done
show hub get clusterimports

step "7. They are clusters of Cluster API, as its own providers would show them. Everything is paused, and nothing can act on the clouds"
show hub get clusters.cluster.x-k8s.io -l fleet.masthead.dev/imported=true
for name in "${imports[@]}"; do
  say "Cluster/$name"
  on hub get awsmanagedclusters,awsmanagedcontrolplanes,azuremanagedclusters,azuremanagedcontrolplanes,gcpmanagedclusters,gcpmanagedcontrolplanes,machinepools \
    -l "cluster.x-k8s.io/cluster-name=$name" --ignore-not-found -o \
    go-template='{{range .items}}  ├─ {{.kind}}/{{.metadata.name}}{{with index .metadata.annotations "cluster.x-k8s.io/managed-by"}}  managed by {{.}}{{end}}{{if index .metadata.annotations "cluster.x-k8s.io/paused"}}, paused{{end}}
{{end}}'
done
show hub get managed -o custom-columns=KIND:.kind,NAME:.metadata.name,POLICIES:.spec.managementPolicies
say "(ClusterAuth knows no policies: it reads the cluster and signs a token, and writes nothing to the cloud)"
refused hub delete cluster.cluster.x-k8s.io in-eks

step "8. They are enrolled, each with the label of its import"
for name in "${imports[@]}"; do
  wait_for "$name to be connected" on hub wait --for=condition=Connected --timeout=5s clusterprofiles/capi-"$name"
done
columns='NAME:.metadata.name,CONNECTED:.status.conditions[?(@.type=="Connected")].status'
columns+=',HEALTHY:.status.conditions[?(@.type=="ControlPlaneHealthy")].status,VERSION:.status.version.kubernetes'
show hub get clusterprofiles -o custom-columns="$columns"

step "9. A claim from each of them"
for name in "${imports[@]}"; do
  where=${cluster[$name]}
  wait_for "the API to be served in $name" on "$where" wait --for=condition=Established --timeout=5s crd/mysqlinstancerequirements.database.acmeco.org
  rename="s/sqldb/$name-db/; s/sql-creds/$name-creds/"
  say "\$ sed '$rename' hack/demo-requirement.yaml | kubectl --kubeconfig $fleet/$where.kubeconfig apply --server-side -f -"
  sed "$rename" hack/demo-requirement.yaml | on "$where" apply --server-side -f -
done
for name in "${imports[@]}"; do
  wait_for "the claim of $name" on "${cluster[$name]}" wait --for=condition=Ready --timeout=5s mysqlinstancerequirements/"$name-db"
done
show hub get mysqlinstancerequirements --namespace bar

step "10. An application in each of them"
for name in "${imports[@]}"; do
  where=${cluster[$name]}
  wait_for "the kind Application in $name" on "$where" wait --for=condition=Established --timeout=5s crd/applications.apps.masthead.dev
  on "$where" get namespace blog >/dev/null 2>&1 || on "$where" create namespace blog >/dev/null
  show "$where" apply --server-side --namespace blog -f config/samples/application/wordpress.yaml
  # What a cloud would do.
  on "$where" patch service wordpress-webserver-svc --namespace blog --subresource=status --type=merge \
    -p '{"status":{"loadBalancer":{"ingress":[{"ip":"192.0.2.10"}]}}}' >/dev/null
  wait_for "WordPress in $name" on "$where" wait --for=jsonpath='{.status.health}'=Healthy --timeout=5s --namespace blog applications/wordpress
done
for name in "${imports[@]}"; do
  wait_for "the report on $name in the hub" on hub wait --for=jsonpath='{.status.applications.healthy}'=1 --timeout=5s applicationreports/capi-"$name"
done
show hub get applicationreports

step "11. A node pool is removed in EKS: its reflection goes, and nothing else"
show hub get machinepools -l cluster.x-k8s.io/cluster-name=in-eks
clouds remove-pool
one_pool() { [[ $(on hub get machinepools -l cluster.x-k8s.io/cluster-name=in-eks -o name | wc -l) == 1 ]]; }
wait_for "the reflection of the pool to go" one_pool
show hub get machinepools -l cluster.x-k8s.io/cluster-name=in-eks
show hub get clusterimports in-eks -o jsonpath='{.status.conditions[?(@.type=="NodePoolsComplete")].message}{"\n"}'

step "12. A token rotates: the same Secret holds the next one, and the connection stays"
since=$(connected_since in-eks)
before=$(token_of in-eks)
clouds rotate
rotated() { [[ $(token_of in-eks) != "$before" ]]; }
wait_for "the next token" rotated
say "in-eks: the hash of the kubeconfig was $before and is $(token_of in-eks)"
say "in-eks: connected since $since, and now since $(connected_since in-eks)"
[[ $(connected_since in-eks) == "$since" ]] || die "the cluster was connected again"

step "13. Un-import the cluster of AKS. What runs there stays, and so does what Crossplane provisioned for it"
show hub delete clusterimports in-aks
show hub get clusters.cluster.x-k8s.io -l fleet.masthead.dev/imported=true
show hub get clusterprofiles -o custom-columns="$columns"
show w2 get mysqlinstancerequirements
show w2 get statefulsets --namespace blog
left=$(on hub get azuremanagedclusters,azuremanagedcontrolplanes,azuremanagedmachinepools,azureclusteridentities,kubernetesclusters,kubernetesclusternodepools \
  --all-namespaces --ignore-not-found -o name)
[[ -z $left ]] || die "un-import leaves $left"
say "of its reflection and of its managed resources nothing is left in the hub"

step "14. All the while, the clouds were only read"
clouds report
tail -n 1 "$fleet/fakecloud.log" | grep -q "attempts to change something: 0" || die "the clouds received requests to change something"

step "Done in $((SECONDS - started)) s. Everything is still up:"
cat <<TXT
  hub          export KUBECONFIG=$PWD/$fleet/hub.kubeconfig
  in-eks       export KUBECONFIG=$PWD/$fleet/w1.kubeconfig
  in-gke       export KUBECONFIG=$PWD/$fleet/w3.kubeconfig
  kubectl      $PWD/$kubectl
  manager log  $PWD/$fleet/manager.log

  Stop and remove everything: make demo-down
TXT
