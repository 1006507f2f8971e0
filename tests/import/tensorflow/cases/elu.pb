
;
x0Placeholder*
dtype0*
shape:

EluElux0*
T0
"
IdentityIdentityElu*
T0