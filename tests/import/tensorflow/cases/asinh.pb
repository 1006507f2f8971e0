
;
x0Placeholder*
dtype0*
shape:

AsinhAsinhx0*
T0
$
IdentityIdentityAsinh*
T0