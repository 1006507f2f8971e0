
;
x0Placeholder*
dtype0*
shape:

NegNegx0*
T0
"
IdentityIdentityNeg*
T0