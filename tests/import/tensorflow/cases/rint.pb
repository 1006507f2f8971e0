
;
x0Placeholder*
dtype0*
shape:

RintRintx0*
T0
#
IdentityIdentityRint*
T0