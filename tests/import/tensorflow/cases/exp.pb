
;
x0Placeholder*
dtype0*
shape:

ExpExpx0*
T0
"
IdentityIdentityExp*
T0