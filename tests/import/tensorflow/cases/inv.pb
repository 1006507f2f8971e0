
;
x0Placeholder*
dtype0*
shape:

InvInvx0*
T0
"
IdentityIdentityInv*
T0